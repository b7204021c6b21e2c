package ethosutest

import (
	"context"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// errStopped ends a run in the middle.
var errStopped = errors.New("stopped")

// Execute runs a stream over memory as hardware would: with any memory that it can
// name. part is how much of it is run, 1 for all.
func Execute(c isa.Config, stream []byte, mem *npu.Memory, part float64) error {
	p, err := npu.Decode(c, stream)
	if err != nil {
		return err
	}
	var regions isa.Regions
	for i, b := range mem {
		if b != nil {
			regions[i] = isa.Region{Kind: isa.Scratch, Size: int64(len(b))}
		}
	}
	n, err := p.Bind(&regions)
	if err != nil {
		return err
	}
	last := int(part * float64(p.Len()))
	err = n.NewRun(nil).Execute(context.Background(), mem, func(i int, _ *npu.Memory) error {
		if i+1 >= last && part < 1 {
			return errStopped
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStopped) {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}
