package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

func TestEmptyPayload(t *testing.T) {
	_, err := counting{Backend: xnnpack.Backend{}}.Compile(context.Background(), &delegate.Payload{})
	if !errors.Is(err, delegate.ErrPayload) {
		t.Errorf("got %v, want %v", err, delegate.ErrPayload)
	}
}

func Example() {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	main()
	// Output: 10 calls of XnnpackBackend
}

// TestSuite runs the conformance suite of backends.
func TestSuite(t *testing.T) {
	program, err := os.ReadFile("../../testdata/digits/xnnpack.pte")
	if err != nil {
		t.Fatal(err)
	}
	b := counting{xnnpack.Backend{}, new(atomic.Int64), new(atomic.Int64)}
	delegatetest.Run(t, b, ptetest.Payloads(t, program, b.ID())...)
}
