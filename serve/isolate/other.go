//go:build !linux || !(amd64 || arm64)

package isolate

import (
	"context"

	"github.com/etrun-go/etrun/serve"
)

// Open fails here.
func Open(context.Context, Options) (serve.Program, error) { return nil, ErrPlatform }

// Work fails here.
func Work(*Job) error { return ErrPlatform }
