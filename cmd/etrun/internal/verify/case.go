package verify

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Tolerance is the default tolerance for floats.
var Tolerance = kernels.Tolerance{Abs: 1e-5, Rel: 1e-3}

// Case runs one test case and returns the differences. steps has the additional tolerance of
// each output, if any. special reports whether an output differs only in NaN or infinities.
func Case(ctx context.Context, m *etrun.Method, c *pte.Case, tolerance kernels.Tolerance, steps []float64) (
	differences []string, special bool, err error) {
	step := session.Step{Callee: m, Values: session.BundledValues(c.Inputs)}
	if err := step.Execute(ctx); err != nil {
		return nil, false, err
	}
	got, err := step.Outputs()
	if err != nil {
		return nil, false, err
	}
	if n := len(c.Outputs); n > 0 && n != len(got) {
		return []string{fmt.Sprintf("outputs: %d, want %d", len(got), n)}, false, nil
	}
	for i, want := range session.BundledValues(c.Outputs) {
		allowed := tolerance
		if i < len(steps) {
			allowed.Abs += steps[i]
		}
		if err := compare.Values(got[i], &want, allowed); err != nil {
			differences = append(differences, fmt.Sprintf("output %d: %v", i, err))
			special = special || diff.OnlySpecial(got[i], &want, allowed)
		}
	}
	return differences, special, nil
}
