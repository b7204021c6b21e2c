// Package all lists the backends that this build holds.
package all

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
)

// Backends returns one of each.
func Backends() []delegate.Backend {
	return []delegate.Backend{
		xnnpack.Backend{},
		ethosu.Backend{},
	}
}
