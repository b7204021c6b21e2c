package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

func TestExitOf(t *testing.T) {
	noFile := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	cases := []struct {
		err  error
		want int
	}{
		{session.Usage("x"), 2},
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
		{cli.ErrDiffer, 6},
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
