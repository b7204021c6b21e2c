package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/etrun-go/etrun/serve/grpc/inference"
	"github.com/etrun-go/etrun/serve/oip"
)

// wire is a message that was prepared, or one of which only the size counts.
type wire struct {
	data []byte
	size int
}

// wireCodec is the codec of messages, and of prepared ones.
type wireCodec struct{}

// Name implements connect.Codec.
func (wireCodec) Name() string { return "proto" }

// Marshal implements connect.Codec.
func (c wireCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend appends a message to dst. The result must be no part of the message: connect overwrites it later.
func (wireCodec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case *wire:
		return append(dst, m.data...), nil
	case proto.Message:
		return proto.MarshalOptions{}.MarshalAppend(dst, m)
	}
	return nil, fmt.Errorf("%T is no message", message)
}

// Unmarshal implements connect.Codec.
func (wireCodec) Unmarshal(data []byte, message any) error {
	switch m := message.(type) {
	case *wire:
		m.size = len(data)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("%T is no message", message)
}

// call calls a procedure. Other errors than those of ctx are *Failure.
func call[In, Out any](ctx context.Context, c *Client, procedure string, in *In, most int) (*Out, error) {
	within, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %v", c.timeout))
	defer cancel()
	client := connect.NewClient[In, Out](c.http, c.base+"/inference.GRPCInferenceService/"+procedure, connect.WithGRPC(),
		connect.WithCodec(wireCodec{}), connect.WithReadMaxBytes(most), connect.WithAcceptCompression("gzip", nil, nil))
	request := connect.NewRequest(in)
	if c.token != "" {
		request.Header().Set("Authorization", "Bearer "+c.token)
	}
	response, err := client.CallUnary(within, request)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), classifyCall(within, err))
	}
	return response.Msg, nil
}

// streamError is an error of HTTP/2 that ends a call. That of net/http, which has no name outside of it, can be assigned to a structure
// with its fields.
type streamError struct {
	StreamID, Code uint32
	Cause          error
}

func (streamError) Error() string { return "the server reset the stream" }

// classifyCall returns the failure of a call.
func classifyCall(ctx context.Context, err error) error {
	failed, known := errors.AsType[*connect.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, reset := errors.AsType[streamError](err)
	ended := network || reset || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case known && connect.IsWireError(err):
		return &Failure{Class("code " + failed.Code().String()), errors.New(text([]byte(failed.Message())))}
	case ended || ctx.Err() != nil || !known || failed.Code() == connect.CodeUnavailable:
		return classify(ctx, err)
	}
	return &Failure{Bad, errors.New(text([]byte(failed.Message())))}
}

// describeRPC is Describe.
func (c *Client) describeRPC(ctx context.Context, name, version string) (*Model, error) {
	answer, err := call[inference.ModelMetadataRequest, inference.ModelMetadataResponse](ctx, c, "ModelMetadata",
		&inference.ModelMetadataRequest{Name: name, Version: version}, maxFacts)
	if err != nil {
		return nil, err
	}
	facts := func(list []*inference.ModelMetadataResponse_TensorMetadata) (all []TensorFact) {
		for _, t := range list {
			all = append(all, TensorFact{Name: t.GetName(), Datatype: oip.Datatype(t.GetDatatype()), Shape: t.GetShape()})
		}
		return all
	}
	return &Model{Name: name, Versions: answer.GetVersions(), Platform: answer.GetPlatform(), Inputs: facts(answer.GetInputs()),
		Outputs: facts(answer.GetOutputs()), version: version}, nil
}

// indexRPC returns the names of all models.
func (c *Client) indexRPC(ctx context.Context) (names []string, err error) {
	answer, err := call[inference.RepositoryIndexRequest, inference.RepositoryIndexResponse](ctx, c, "RepositoryIndex",
		&inference.RepositoryIndexRequest{}, maxFacts)
	for _, m := range answer.GetModels() {
		names = append(names, m.GetName())
	}
	return names, err
}

// messageOf returns the message of an inference.
func messageOf(m *Model, inputs []oip.Tensor) ([]byte, error) {
	r := &inference.ModelInferRequest{ModelName: m.Name, ModelVersion: m.version}
	for i := range inputs {
		t := &inference.ModelInferRequest_InferInputTensor{Name: inputs[i].Name, Datatype: string(inputs[i].Datatype)}
		for _, n := range inputs[i].Shape {
			t.Shape = append(t.Shape, int64(n))
		}
		r.Inputs = append(r.Inputs, t)
		r.RawInputContents = append(r.RawInputContents, inputs[i].AppendData(nil))
	}
	return proto.Marshal(r)
}

// sendRPC sends a prepared inference.
func (c *Client) sendRPC(ctx context.Context, message []byte) error {
	_, err := call[wire, wire](ctx, c, "ModelInfer", &wire{data: message}, maxAnswer)
	return err
}
