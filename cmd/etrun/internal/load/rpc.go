package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/etrun-go/etrun/serve/grpc/inference"
	"github.com/etrun-go/etrun/serve/oip"
)

// codes are the names of gRPC's codes.
var codes = []string{"ok", "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied",
	"resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss",
	"unauthenticated"}

const (
	rpcType       = "application/grpc"
	maxRPCTimeout = 99_999_999 // as many digits as a time limit may have
)

// call calls a procedure with a message, and has the answer read. Other errors than those of ctx are *Failure.
func (c *Client) call(ctx context.Context, procedure string, message []byte, most int64, read func(io.Reader) error) error {
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	r := &request{method: http.MethodPost, path: "/inference.GRPCInferenceService/" + procedure, body: body, rpc: true}
	return c.within(ctx, r, func(a *http.Response) error {
		if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), rpcType) {
			return bad("no answer of gRPC: status %d, content type %.40q", a.StatusCode, a.Header.Get("Content-Type"))
		}
		n, err := readMessage(a.Body, most, read)
		if err != nil {
			return err
		}
		return ended(a, n)
	})
}

func bad(format string, args ...any) error { return &Failure{Bad, fmt.Errorf(format, args...)} }

// readMessage reads an answer with at most one message, and returns how many it had.
func readMessage(r io.Reader, most int64, read func(io.Reader) error) (n int, err error) {
	var prefix [5]byte
	if _, err := io.ReadFull(r, prefix[:]); err == io.EOF {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	if prefix[0] != 0 || size > most {
		return 0, bad("a message of %d bytes with flags %d, want at most %d and none", size, prefix[0], most)
	}
	message := &io.LimitedReader{R: r, N: size}
	if err := read(message); err != nil {
		return 0, err
	}
	if message.N > 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if _, err := io.ReadFull(r, prefix[:1]); err != io.EOF {
		return 0, errors.Join(bad("more than one message"), err)
	}
	return 1, nil
}

// ended returns the failure that an answer with n messages ends with.
func ended(a *http.Response, n int) error {
	status := a.Header.Get("Grpc-Status") + a.Trailer.Get("Grpc-Status")
	switch code, err := strconv.ParseUint(status, 10, 31); {
	case status == "":
		return io.ErrUnexpectedEOF
	case err != nil || code == 0 && n == 0:
		return bad("status %.20q and %d messages", status, n)
	case code == 0:
		return nil
	default:
		message, err := url.PathUnescape(a.Header.Get("Grpc-Message") + a.Trailer.Get("Grpc-Message"))
		if err != nil {
			message = a.Trailer.Get("Grpc-Message")
		}
		name := status
		if code < uint64(len(codes)) {
			name = codes[code]
		}
		return &Failure{Class("code " + name), errors.New(text([]byte(message)))}
	}
}

// askRPC calls a procedure with a generated message.
func (c *Client) askRPC(ctx context.Context, procedure string, question, answer proto.Message) error {
	data, err := proto.Marshal(question)
	if err != nil {
		return err
	}
	return c.call(ctx, procedure, data, maxFacts, func(r io.Reader) error {
		data, err := io.ReadAll(r)
		if err == nil && proto.Unmarshal(data, answer) != nil {
			err = bad("no %s", answer.ProtoReflect().Descriptor().Name())
		}
		return err
	})
}

// describeRPC is Describe.
func (c *Client) describeRPC(ctx context.Context, name, version string) (*Model, error) {
	answer := new(inference.ModelMetadataResponse)
	if err := c.askRPC(ctx, "ModelMetadata", &inference.ModelMetadataRequest{Name: name, Version: version}, answer); err != nil {
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
	answer := new(inference.RepositoryIndexResponse)
	err = c.askRPC(ctx, "RepositoryIndex", &inference.RepositoryIndexRequest{}, answer)
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
	return c.call(ctx, "ModelInfer", message, maxAnswer, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
}
