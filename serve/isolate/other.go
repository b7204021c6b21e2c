//go:build !linux || !(amd64 || arm64)

package isolate

import (
	"context"

	"github.com/etrun-go/etrun/hal/confine"
	"github.com/etrun-go/etrun/serve"
)

// Program is not made here.
type Program struct{ serve.Program }

// Digest is empty.
func (p *Program) Digest() string { return "" }

// Layers are none.
func (p *Program) Layers() []confine.Layer { return nil }

// Open fails here.
func Open(context.Context, Options) (*Program, error) { return nil, ErrPlatform }

// Work fails here.
func Work(*Job) error { return ErrPlatform }
