package grpc

import (
	"context"
	"net/http"

	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/etrun-go/etrun/serve"
)

// service is the prefix of the procedures' paths, health that of the health service.
const (
	service = "/inference.GRPCInferenceService/"
	health  = "/grpc.health.v1.Health/"
)

// names are those of the services.
var names = []string{"inference.GRPCInferenceService", grpchealth.HealthV1ServiceName, grpcreflect.ReflectV1ServiceName,
	grpcreflect.ReflectV1AlphaServiceName}

// Open are the paths of health checks of the server. They name no model.
var Open = []string{service + "ServerLive", service + "ServerReady", health + "Check"}

// handler answers calls.
type handler struct {
	server *serve.Server
	ready  func() error
	stop   context.Context
	calls  map[string]http.Handler
}
