package grpc

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc/inference"
)

// inferences are the paths whose messages have tensors.
var inferences = map[string]bool{service + "ModelInfer": true, service + "ModelStreamInfer": true}

// procedure answers a call.
type procedure func(x *exchange) error

// table returns the procedures by their paths.
func (h *handler) table() map[string]procedure {
	return map[string]procedure{
		service + "ModelInfer":            h.modelInfer,
		service + "ModelStreamInfer":      h.modelStreamInfer,
		service + "ServerLive":            unary(h.serverLive),
		service + "ServerReady":           unary(h.serverReady),
		service + "ModelReady":            unary(h.modelReady),
		service + "ServerMetadata":        unary(h.serverMetadata),
		service + "ModelMetadata":         unary(h.modelMetadata),
		service + "ModelConfig":           unary(h.modelConfig),
		service + "ModelStatistics":       unary(h.modelStatistics),
		service + "RepositoryIndex":       unary(h.repositoryIndex),
		service + "RepositoryModelLoad":   unary(h.repositoryModelLoad),
		service + "RepositoryModelUnload": unary(h.repositoryModelUnload),

		health + "Check": h.check,

		reflection + "ServerReflectionInfo":      h.reflect,
		reflectionAlpha + "ServerReflectionInfo": h.reflect,
	}
}

// generated is a generated message.
type generated[M any] interface {
	*M
	proto.Message
}

// encoded is a generated message as an answer.
type encoded struct{ proto.Message }

func (e encoded) append(dst []byte) []byte {
	data, _ := proto.MarshalOptions{}.MarshalAppend(dst, e.Message) // fails for texts that are not UTF-8, which this package does not make
	return data
}

// unary returns a procedure with one request and one answer.
func unary[M any, Req generated[M], Res proto.Message](f func(x *exchange, r Req) (Res, error)) procedure {
	return func(x *exchange) error {
		r := Req(new(M))
		data, err := x.only()
		if err == nil {
			err = decode(data, r)
		}
		if err != nil {
			return err
		}
		answer, err := f(x, r)
		if err != nil {
			return err
		}
		return x.send(encoded{answer})
	}
}

// decode reads a message.
func decode(data []byte, m proto.Message) error {
	if proto.Unmarshal(data, m) != nil {
		return invalid("", "malformed message: it is no %s, or has a string that is not UTF-8", m.ProtoReflect().Descriptor().Name())
	}
	return nil
}

// check answers a health check of the server, by the empty name or that of a service, or of a model by its name. Clients that are not
// authenticated do not learn which models there are.
func (h *handler) check(x *exchange) error {
	data, err := x.only()
	if err != nil {
		return err
	}
	var name string
	if err := fields(data, func(n protowire.Number, _, value []byte) error {
		if n == 1 {
			name = string(value)
		}
		return nil
	}); err != nil {
		return err
	}
	err = h.ready()
	if name != "" && !slices.Contains(names, name) {
		if serve.ClientOf(x.context()).Refused || h.server.Model(name) == nil {
			return &failure{status: http.StatusNotFound, text: "unknown service"}
		}
		err = h.server.ModelReady(name, "")
	}
	return x.send(healthy(err == nil))
}

// healthy is a HealthCheckResponse: SERVING or NOT_SERVING.
type healthy bool

func (y healthy) append(dst []byte) []byte {
	status := uint64(2)
	if y {
		status = 1
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, 1, protowire.VarintType), status)
}

func (h *handler) serverLive(_ *exchange, _ *inference.ServerLiveRequest) (*inference.ServerLiveResponse, error) {
	return &inference.ServerLiveResponse{Live: true}, nil
}

func (h *handler) serverReady(_ *exchange, _ *inference.ServerReadyRequest) (*inference.ServerReadyResponse, error) {
	return &inference.ServerReadyResponse{Ready: h.ready() == nil}, nil
}

// modelReady answers for models of the server; another name is an error.
func (h *handler) modelReady(_ *exchange, r *inference.ModelReadyRequest) (*inference.ModelReadyResponse, error) {
	err := h.server.ModelReady(r.Name, r.Version)
	if err != nil && h.server.Model(r.Name) == nil {
		return nil, err
	}
	return &inference.ModelReadyResponse{Ready: err == nil}, nil
}

func (h *handler) serverMetadata(_ *exchange, _ *inference.ServerMetadataRequest) (*inference.ServerMetadataResponse, error) {
	m := h.server.Metadata()
	return &inference.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

func (h *handler) modelMetadata(x *exchange, r *inference.ModelMetadataRequest) (*inference.ModelMetadataResponse, error) {
	m, err := h.server.ModelMetadata(x.context(), r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	return &inference.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform,
		Inputs: each(m.Inputs, metadataOf), Outputs: each(m.Outputs, metadataOf)}, nil
}

func (h *handler) modelConfig(x *exchange, r *inference.ModelConfigRequest) (*inference.ModelConfigResponse, error) {
	c, err := h.server.Configuration(x.context(), r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	return &inference.ModelConfigResponse{Config: configOf(&c)}, nil
}

// modelStatistics answers for all models if none is named.
func (h *handler) modelStatistics(_ *exchange, r *inference.ModelStatisticsRequest) (*inference.ModelStatisticsResponse, error) {
	if r.Name == "" && r.Version == "" {
		return &inference.ModelStatisticsResponse{ModelStats: each(h.server.AllStatistics(), statisticsOf)}, nil
	}
	list, err := h.server.Statistics(r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	return &inference.ModelStatisticsResponse{ModelStats: each(list, statisticsOf)}, nil
}

// repository returns an error for the name of a repository: there is one without a name.
func repository(name string) error {
	if name != "" {
		return fmt.Errorf("%w: repository %.140q, want no name", serve.ErrUnknown, name)
	}
	return nil
}

func (h *handler) repositoryIndex(_ *exchange, r *inference.RepositoryIndexRequest) (*inference.RepositoryIndexResponse, error) {
	if err := repository(r.RepositoryName); err != nil {
		return nil, err
	}
	return &inference.RepositoryIndexResponse{Models: each(h.server.Index(r.Ready), indexOf)}, nil
}

func (h *handler) repositoryModelLoad(x *exchange,
	r *inference.RepositoryModelLoadRequest) (*inference.RepositoryModelLoadResponse, error) {
	err := h.control(x, r.RepositoryName, func() error { return h.server.LoadModel(r.ModelName, parametersOf(r.Parameters)) })
	return &inference.RepositoryModelLoadResponse{}, err
}

func (h *handler) repositoryModelUnload(x *exchange,
	r *inference.RepositoryModelUnloadRequest) (*inference.RepositoryModelUnloadResponse, error) {
	err := h.control(x, r.RepositoryName, func() error { return h.server.UnloadModel(x.context(), r.ModelName, parametersOf(r.Parameters)) })
	return &inference.RepositoryModelUnloadResponse{}, err
}

// control calls act, which may take long. Clients that may load models may see why that failed.
func (h *handler) control(x *exchange, name string, act func() error) error {
	if err := repository(name); err != nil {
		return err
	}
	_ = x.control.SetWriteDeadline(time.Time{}) // not supported by all writers
	err := act()
	h.server.WriteBy(x.writer)
	if err != nil && serve.Explain(err).Status == http.StatusInternalServerError { // which is in the log since the load
		return &failure{status: http.StatusInternalServerError, text: err.Error()}
	}
	return err
}
