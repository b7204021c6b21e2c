//go:build !linux || !(amd64 || arm64)

package isolate

import (
	"context"

	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/serve"
)

// Program cannot be opened on this platform.
type Program struct{ serve.Program }

// Digest returns "".
func (p *Program) Digest() string { return "" }

// Layers returns nil.
func (p *Program) Layers() []sandbox.Layer { return nil }

// Open returns ErrPlatform.
func Open(context.Context, Options) (*Program, error) { return nil, ErrPlatform }

// Work returns ErrPlatform.
func Work(*Job) error { return ErrPlatform }
