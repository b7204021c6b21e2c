package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
)

func TestExitOf(t *testing.T) {
	noFile := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	cases := []struct {
		err  error
		want int
	}{
		{usage("x"), 2},
		{fmt.Errorf("model: %w", noFile), 2},
		{&etrun.LoadError{Class: etrun.ErrFormat, Err: noFile}, 2},
		{&output.Error{Err: noFile}, 1},
		{&input.Error{Reason: input.ErrFile, Err: noFile}, 2},
		{&input.Error{Reason: input.ErrMismatch, Err: errors.New("x")}, 5},
		{&input.Error{Reason: input.ErrMemory, Err: errors.New("x")}, 9},
		{&etrun.LoadError{Class: etrun.ErrFormat, Err: errors.New("x")}, 3},
		{&etrun.LoadError{Class: etrun.ErrUnsupported, Err: errors.New("x")}, 4},
		{&etrun.MissingError{}, 4},
		{&etrun.InputError{}, 5},
		{&etrun.MemoryError{}, 9},
		{&etrun.InstructionError{Class: etrun.ErrExecute, Err: errors.New("x")}, 1},
		{&etrun.InstructionError{Class: etrun.ErrPanic, Err: errors.New("x")}, 1},
		{&etrun.InstructionError{Class: etrun.ErrDevice, Err: errors.New("x")}, 7},
		{&etrun.InstructionError{Err: context.Canceled}, 8},
		{fmt.Errorf("time-out: %w", context.DeadlineExceeded), 8},
		{errDiffer, 6},
		{etrun.ErrBusy, 1},
		{errors.New("x"), 1},
	}
	for _, c := range cases {
		if got := exitOf(c.err).code; got != c.want {
			t.Errorf("%T %v: got %d, want %d", c.err, c.err, got, c.want)
		}
	}
}

func TestExitCodesAreDistinct(t *testing.T) {
	var codes []int
	for _, e := range exits {
		codes = append(codes, e.code)
	}
	slices.Sort(codes)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
}

func TestByteSize(t *testing.T) {
	cases := []struct {
		text string
		want int64
	}{
		{"0", 0}, {"4096", 4096}, {"4096B", 4096}, {"64MiB", 64 << 20}, {"64M", 64 << 20}, {"64MB", 64e6},
		{"1.5G", 3 << 29}, {"2 KiB", 2048}, {"1TB", 1e12}, {"10kB", 10e3},
	}
	for _, c := range cases {
		var b byteSize
		if err := b.Set(c.text); err != nil || int64(b) != c.want {
			t.Errorf("%q: got %d, %v, want %d", c.text, b, err, c.want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1EiB", "9e30", "NaN", "1MiBs", "Inf"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, b)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	cases := map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.0 GiB", 7 << 40: "7.0 TiB"}
	for n, want := range cases {
		if got := formatBytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	var took []time.Duration
	for i := 10; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Millisecond)
	}
	if got, want := spread(took), (latency{1, 5, 9, 10}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := spread(took[:1]), (latency{10, 10, 10, 10}); got != want {
		t.Errorf("one duration: got %v, want %v", got, want)
	}
}
