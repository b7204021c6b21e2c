//go:build !linux

package cpu

import (
	"errors"
	"os"
)

// MapLeased fails: only Linux has leases.
func MapLeased(*os.File, int64) (*Mapping, error) { return nil, errors.ErrUnsupported }

// Forgettable does nothing on this system.
func (*Mapping) Forgettable() {}

// Forget does nothing on this system.
func Forget() {}
