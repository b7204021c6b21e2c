// Package all provides the backends of this build.
package all

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
)

// Backends returns one of each backend, with default options.
func Backends() []delegate.Backend {
	return []delegate.Backend{
		xnnpack.Backend{},
		ethosu.Backend{},
	}
}
