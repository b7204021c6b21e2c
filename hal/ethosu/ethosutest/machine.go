package ethosutest

import (
	"context"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// errStopped stops a run early.
var errStopped = errors.New("stopped")

// Execute runs a stream on any memory that it can address, as hardware would. part is the fraction
// of it to run, 1 for all.
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
