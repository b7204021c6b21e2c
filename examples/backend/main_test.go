package main

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
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
