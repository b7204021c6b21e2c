package main

import (
	"context"
	"math"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// values runs the calls once, for the values of all instructions.
func (v *viewCommand) values(ctx context.Context, s *session.Session) error {
	if err := s.Prepare(ctx, v.calls); err != nil {
		return err
	}
	if _, err := s.Time(ctx); err != nil {
		return err
	}
	return v.kept[len(v.kept)-1].Err()
}

// differences sets the numeric difference of the nodes whose values both programs have.
func (v *viewCommand) differences(ctx context.Context, programs []*graph.Program) {
	a, b := v.kept[0].List, v.kept[1].List
	tolerance := kernels.Tolerance{Abs: math.MaxFloat64}
	var pairs []layers.Pair
	if layers.Same(v.specs[0], v.specs[1]) {
		pairs = layers.Align(a, b)
	} else {
		near := kernels.Tolerance{Abs: 1e-3, Rel: 1e-3}
		pairs = append(layers.AlignOther(ctx, a, b, near), layers.Trace(ctx, v.kept[0], v.kept[1], near).Pairs(b)...)
	}
	for _, p := range pairs {
		if p.A.Value.Kind != tensor.KindTensor || p.B.Value.Kind != tensor.KindTensor || ctx.Err() != nil {
			continue
		}
		d := diff.Measure(p.B.Value, p.A.Value, tolerance)
		for i, w := range []*layers.Written{p.A, p.B} {
			programs[i].Differs(w.Method, w.Chain, w.Instruction, w.Node, float64(d.MaxAbs))
		}
	}
}
