package grpc

import (
	"context"
	"strings"

	"github.com/etrun-go/etrun/serve"
)

// Prefixes of the paths of procedures.
const (
	service         = "/inference.GRPCInferenceService/"
	health          = "/grpc.health.v1.Health/"
	reflection      = "/grpc.reflection.v1.ServerReflection/"
	reflectionAlpha = "/grpc.reflection.v1alpha.ServerReflection/"
)

// names are those of the services.
var names = each([]string{service, health, reflection, reflectionAlpha}, func(path *string) string { return strings.Trim(*path, "/") })

// Open are the paths of health checks of the server. They name no model.
var Open = []string{service + "ServerLive", service + "ServerReady", health + "Check"}

// handler answers calls.
type handler struct {
	server *serve.Server
	ready  func() error
	stop   context.Context
	calls  map[string]procedure
}
