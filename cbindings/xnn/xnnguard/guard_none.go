//go:build !cgo || nodl || !linux || !(amd64 || arm64)

package xnnguard

import (
	"errors"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

func install(*xnn.Library) error { return errors.New("xnnguard: needs cgo") }

// Set does nothing.
func Set(Options) {}

// Read returns zeros.
func Read(bool) Stats { return Stats{} }
