package grpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc/inference"
)

// inferences are the paths whose messages have tensors.
var inferences = map[string]bool{service + "ModelInfer": true, service + "ModelStreamInfer": true}

// table returns the handlers of the procedures by their paths.
func (h *handler) table() map[string]http.Handler {
	options := []connect.HandlerOption{connect.WithCodec(codec{}), connect.WithCompression("gzip", nil, nil)}
	calls := map[string]http.Handler{
		"ModelInfer":            connect.NewServerStreamHandler(service+"ModelInfer", h.modelInfer, options...),
		"ModelStreamInfer":      connect.NewBidiStreamHandler(service+"ModelStreamInfer", h.modelStreamInfer, options...),
		"ServerLive":            unary(h.serverLive, options),
		"ServerReady":           unary(h.serverReady, options),
		"ModelReady":            unary(h.modelReady, options),
		"ServerMetadata":        unary(h.serverMetadata, options),
		"ModelMetadata":         unary(h.modelMetadata, options),
		"ModelConfig":           unary(h.modelConfig, options),
		"ModelStatistics":       unary(h.modelStatistics, options),
		"RepositoryIndex":       unary(h.repositoryIndex, options),
		"RepositoryModelLoad":   unary(h.repositoryModelLoad, options),
		"RepositoryModelUnload": unary(h.repositoryModelUnload, options),
	}
	table := make(map[string]http.Handler)
	for name, call := range calls {
		table[service+name] = call
	}
	_, checks := grpchealth.NewHandler(checker{h}, options...)
	table[health+"Check"], table[health+"Watch"] = checks, checks
	reflector := grpcreflect.NewStaticReflector(names...)
	for _, newHandler := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha} {
		path, reflection := newHandler(reflector, options...)
		table[path+"ServerReflectionInfo"] = h.untilStop(reflection)
	}
	return table
}

// untilStop returns a stream that ends when the server stops, as it does after the time for a body.
func (h *handler) untilStop(stream http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		defer context.AfterFunc(h.stop, func() { x.await(time.Nanosecond) })()
		stream.ServeHTTP(w, r)
	})
}

// unary returns the handler of a procedure with one request and one answer.
func unary[Req, Res any](f func(ctx context.Context, r *Req) (*Res, error), options []connect.HandlerOption) http.Handler {
	return connect.NewUnaryHandlerSimple("", func(ctx context.Context, r *received[Req]) (*Res, error) {
		if r.err != nil {
			return nil, exchangeOf(ctx).fail(r.err)
		}
		answer, err := f(ctx, &r.message)
		if err != nil {
			return nil, exchangeOf(ctx).fail(err)
		}
		return answer, nil
	}, options...)
}

// checker answers health checks of the server, by the empty name or that of a service, and of a model by its name.
type checker struct{ *handler }

// Check implements grpchealth.Checker. Clients that are not authenticated do not learn which models there are.
func (c checker) Check(ctx context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	err := c.ready()
	if r.Service != "" && !slices.Contains(names, r.Service) {
		if serve.ClientOf(ctx).Refused || c.server.Model(r.Service) == nil {
			return nil, connect.NewError(connect.CodeNotFound, errors.New("unknown service"))
		}
		err = c.server.ModelReady(r.Service, "")
	}
	if err != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

func (h *handler) serverLive(context.Context, *inference.ServerLiveRequest) (*inference.ServerLiveResponse, error) {
	return &inference.ServerLiveResponse{Live: true}, nil
}

func (h *handler) serverReady(context.Context, *inference.ServerReadyRequest) (*inference.ServerReadyResponse, error) {
	return &inference.ServerReadyResponse{Ready: h.ready() == nil}, nil
}

// modelReady answers for models of the server; another name is an error.
func (h *handler) modelReady(_ context.Context, r *inference.ModelReadyRequest) (*inference.ModelReadyResponse, error) {
	err := h.server.ModelReady(r.Name, r.Version)
	if err != nil && h.server.Model(r.Name) == nil {
		return nil, err
	}
	return &inference.ModelReadyResponse{Ready: err == nil}, nil
}

func (h *handler) serverMetadata(context.Context, *inference.ServerMetadataRequest) (*inference.ServerMetadataResponse, error) {
	m := h.server.Metadata()
	return &inference.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

func (h *handler) modelMetadata(ctx context.Context, r *inference.ModelMetadataRequest) (*inference.ModelMetadataResponse, error) {
	m, err := h.server.ModelMetadata(ctx, r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	return &inference.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform,
		Inputs: each(m.Inputs, metadataOf), Outputs: each(m.Outputs, metadataOf)}, nil
}

func (h *handler) modelConfig(ctx context.Context, r *inference.ModelConfigRequest) (*inference.ModelConfigResponse, error) {
	c, err := h.server.Configuration(ctx, r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	return &inference.ModelConfigResponse{Config: configOf(&c)}, nil
}

// modelStatistics answers for all models if none is named.
func (h *handler) modelStatistics(_ context.Context, r *inference.ModelStatisticsRequest) (*inference.ModelStatisticsResponse, error) {
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

func (h *handler) repositoryIndex(_ context.Context, r *inference.RepositoryIndexRequest) (*inference.RepositoryIndexResponse, error) {
	if err := repository(r.RepositoryName); err != nil {
		return nil, err
	}
	return &inference.RepositoryIndexResponse{Models: each(h.server.Index(r.Ready), indexOf)}, nil
}

func (h *handler) repositoryModelLoad(ctx context.Context,
	r *inference.RepositoryModelLoadRequest) (*inference.RepositoryModelLoadResponse, error) {
	err := h.control(ctx, r.RepositoryName, func() error { return h.server.LoadModel(r.ModelName, parametersOf(r.Parameters)) })
	return &inference.RepositoryModelLoadResponse{}, err
}

func (h *handler) repositoryModelUnload(ctx context.Context,
	r *inference.RepositoryModelUnloadRequest) (*inference.RepositoryModelUnloadResponse, error) {
	err := h.control(ctx, r.RepositoryName, func() error { return h.server.UnloadModel(ctx, r.ModelName, parametersOf(r.Parameters)) })
	return &inference.RepositoryModelUnloadResponse{}, err
}

// control calls act, which may take long. Clients that may load models may see why that failed.
func (h *handler) control(ctx context.Context, name string, act func() error) error {
	if err := repository(name); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	_ = x.control.SetWriteDeadline(time.Time{}) // not supported by all writers
	err := act()
	h.server.WriteBy(x.writer)
	if err != nil && serve.Explain(err).Status == http.StatusInternalServerError { // which is in the log since the load
		x.noted = true
		note(x.writer, http.StatusInternalServerError)
		return connect.NewError(connect.CodeInternal, err)
	}
	return err
}
