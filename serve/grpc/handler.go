package grpc

import (
	"context"
	"net/http"

	"github.com/etrun-go/etrun/serve"
)

// service is the prefix of the procedures' paths, health that of the health service.
const (
	service = "/inference.GRPCInferenceService/"
	health  = "/grpc.health.v1.Health/"
)

// Open are the paths of health checks of the server. They name no model.
var Open = []string{service + "ServerLive", service + "ServerReady", health + "Check"}

// handler answers calls.
type handler struct {
	server *serve.Server
	ready  func() error
	stop   context.Context
	calls  map[string]http.Handler
}
