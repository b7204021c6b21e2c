package kerneltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Case is one call of an operator with its expected result.
type Case struct {
	Name string
	Op   string // full name, "aten::add.out"
	// Args are the schema's arguments before the outs, in order: nil for None, a
	// *tensor.Tensor, []*tensor.Tensor (nil entries for None), bool, int, int64,
	// tensor.DType, float64, string, []int, []int64, []float64 or []bool.
	Args []any
	// Outs are the outs as declared: type, sizes, dim order and dynamism matter, contents do not.
	// Nil means as in Want, static.
	Outs []any
	// Want contains the expected contents of every argument that the operator writes, in schema
	// order (*tensor.Tensor, or []*tensor.Tensor for a list), and then the result of an operator
	// that returns a value: bool, int, float64 or a tensor. A nil entry is not compared.
	Want []any
	// Unread are the arguments whose elements nothing reads ([kernels.Ctx.Unread]): they keep
	// their sizes, and are not compared.
	Unread []int
	// Refused, if not empty, is a part of the expected error.
	Refused string
	// Scale is the scale of the tolerance ([kernels.Family.Tolerance]); 0 means the
	// largest magnitude in the wanted output.
	Scale float64
	// Tolerance replaces that of the operator's family.
	Tolerance *kernels.Tolerance
}

// Run runs each case as a subtest: on one thread, again as the same instruction in a second run,
// and on three threads.
func Run(t *testing.T, set *kernels.Set, cases ...Case) {
	t.Helper()
	pool := cpu.NewPool(3)
	t.Cleanup(pool.Close)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Helper()
			if err := c.check(set, kernels.NewCtx(nil)); err != nil {
				t.Fatal(err)
			}
			if err := c.check(set, kernels.NewCtx(pool)); err != nil {
				t.Fatalf("on three threads: %v", err)
			}
		})
	}
}

func (c *Case) check(set *kernels.Set, ctx *kernels.Ctx) error {
	k, err := c.call(set)
	if err != nil {
		return err
	}
	refused, broken := k.run(ctx)
	if broken != nil {
		return broken
	}
	if err := c.verdict(k, refused); err != nil {
		return fmt.Errorf("%s: %w", k.text, err)
	}
	if err := k.twice(ctx, refused); err != nil {
		return err
	}
	return nil
}

// call prepares the call; missing outs are derived from Want.
func (c *Case) call(set *kernels.Set) (*call, error) {
	_, sig, ok, err := set.Lookup(c.Op)
	if !ok || err != nil {
		return nil, fmt.Errorf("operator %q: in the set: %v, error %v", c.Op, ok, err)
	}
	args, outs := append([]any(nil), c.Args...), c.Outs
	if want := len(sig.Args) - len(args); outs == nil && want > 0 {
		if len(c.Want) < want {
			return nil, fmt.Errorf("case %q gives %d arguments and %d wanted outputs, the schema has %d", c.Name, len(args), len(c.Want), len(sig.Args))
		}
		skip := 0 // mutated arguments are first in Want
		for _, a := range sig.Args {
			if a.Mutated {
				skip++
			}
		}
		outs = c.Want[skip : skip+want]
	}
	var result *tensor.Tensor
	if sig.Result != nil && len(c.Want) > 0 {
		result, _ = c.Want[len(c.Want)-1].(*tensor.Tensor)
	}
	k, err := newCall(set, c.Op, append(args, outs...), result)
	if err == nil {
		k.ignore(c.Unread)
	}
	return k, err
}

// verdict compares the outcome of a call with the expected one.
func (c *Case) verdict(k *call, refused error) error {
	switch {
	case c.Refused != "" && refused == nil:
		return fmt.Errorf("accepted, an error with %q was due", c.Refused)
	case c.Refused != "":
		if !strings.Contains(refused.Error(), c.Refused) {
			return fmt.Errorf("error %q, want one with %q", refused, c.Refused)
		}
		return nil
	case refused != nil:
		return refused
	}
	n := 0
	for i, w := range c.Want {
		switch w := w.(type) {
		case *tensor.Tensor:
			if err := c.compare(k, n, w); err != nil {
				return fmt.Errorf("output %d: %w", i, err)
			}
			n++
		case []*tensor.Tensor:
			for j := range w {
				if err := c.compare(k, n, w[j]); err != nil {
					return fmt.Errorf("output %d, item %d: %w", i, j, err)
				}
				n++
			}
		case nil:
			n++
		default:
			want, err := scalarValue(w)
			if got := k.returned; err != nil || got == nil || got.Kind != want.Kind || got.Int != want.Int || got.Bool != want.Bool ||
				!(kernels.Tolerance{}).Allows(got.Double, want.Double) {
				return fmt.Errorf("result %v, want %v", got, w)
			}
		}
	}
	return nil
}

func (c *Case) compare(k *call, n int, want *tensor.Tensor) error {
	if n >= len(k.written) {
		return fmt.Errorf("the operator writes %d tensors", len(k.written))
	}
	tol := k.op.Family.Tolerance(want.DType, c.scale(want))
	if c.Tolerance != nil {
		tol = *c.Tolerance
	}
	if got := k.written[n]; got.unread {
		if !slices.Equal(got.t.Sizes, want.Sizes) {
			return fmt.Errorf("got %v, want %v", got.t, want)
		}
		return nil
	}
	return compare.Tensors(k.written[n].t, want, tol)
}

func (c *Case) scale(want *tensor.Tensor) float64 {
	if c.Scale != 0 {
		return c.Scale
	}
	return compare.Largest(want)
}
