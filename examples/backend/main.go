// Command backend runs a program with a custom backend. It wraps the XNNPACK backend,
// forwards every call to it, and counts calls and their time.
package main

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// counting is a backend with the ID of the backend that it wraps. It is safe for
// concurrent use, as required for backends.
type counting struct {
	delegate.Backend
	calls, nanoseconds *atomic.Int64
}

// Compile checks the payload and compiles it to an image, once per program.
func (c counting) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	if len(p.Data) == 0 {
		return nil, delegate.Errorf(c.ID(), delegate.ErrPayload, "payload", "0 bytes")
	}
	image, err := c.Backend.Compile(ctx, p)
	if err != nil {
		return nil, err
	}
	return countingImage{image, c}, nil
}

// countingImage is immutable and shared by all method instances.
type countingImage struct {
	delegate.Image
	backend counting
}

// Unit creates the state of one method instance: working memory, jobs of a device.
func (i countingImage) Unit(in delegate.Instance) (delegate.Unit, error) {
	unit, err := i.Image.Unit(in)
	if err != nil {
		return nil, err
	}
	return countingUnit{unit, i.backend}, nil
}

type countingUnit struct {
	delegate.Unit
	backend counting
}

// Execute reads the inputs among args, resizes the outputs and writes them.
func (u countingUnit) Execute(ctx context.Context, args []*tensor.Value) error {
	start := time.Now()
	err := u.Unit.Execute(ctx, args)
	u.backend.calls.Add(1)
	u.backend.nanoseconds.Add(int64(time.Since(start)))
	return err
}

func run() error {
	backend := counting{xnnpack.Backend{}, new(atomic.Int64), new(atomic.Int64)}
	prog, err := etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(backend))
	if err != nil {
		return err
	}
	defer prog.Close()
	ctx := context.Background()
	m, err := prog.Load(ctx, "forward")
	if err != nil {
		return err
	}
	defer m.Close()
	for range 10 {
		if _, err := etrun.Run[float32](ctx, m, make([]float32, 8*8)); err != nil {
			return err
		}
	}
	fmt.Printf("%d calls of %s\n", backend.calls.Load(), m.Delegates()[0].Backend)
	log.Printf("%v in all", time.Duration(backend.nanoseconds.Load()))
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
