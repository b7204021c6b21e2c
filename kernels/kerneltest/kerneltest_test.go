package kerneltest

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// twiceOp returns a set with an operator that doubles a float32 tensor, implemented by f.
func twiceOp(f kernels.Func) *kernels.Set {
	return kernels.NewSet([]kernels.Op{{
		Schema: "test::twice.out(Tensor self, *, Tensor(a!) out)", Func: f, DTypes: "float32", Family: kernels.Arith,
	}})
}

func twice(_ *kernels.Ctx, a kernels.Args) error {
	in, out := a.Tensor(0), a.Tensor(1)
	if err := kernels.WantDType(0, in, tensor.Float32); err != nil {
		return err
	}
	if err := kernels.WantDType(1, out, tensor.Float32); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 1, in.Sizes); err != nil {
		return err
	}
	dst := tensor.Data[float32](out)
	for i, v := range tensor.Data[float32](in) {
		dst[i] = 2 * v
	}
	return nil
}

var sink []byte

// broken are incorrect implementations of doubling, with a part of the expected report.
var broken = []struct {
	name, says string
	f          kernels.Func
}{
	{"right", "", twice},
	{"panics", "panic: here", func(*kernels.Ctx, kernels.Args) error { panic("here") }},
	{"writes its input", "byte 3 of an input written", func(c *kernels.Ctx, a kernels.Args) error {
		err := twice(c, a)
		tensor.Data[float32](a.Tensor(0))[0] = -1
		return err
	}},
	{"leaves an element", "left unwritten", func(c *kernels.Ctx, a kernels.Args) error {
		out := tensor.Data[float32](a.Tensor(1))
		last := out[len(out)-1]
		err := twice(c, a)
		out[len(out)-1] = last
		return err
	}},
	{"adds to its out", "read before it was", func(c *kernels.Ctx, a kernels.Args) error {
		out := a.Tensor(1).Data
		out[0]++
		first := out[0]
		err := twice(c, a)
		out[0] = first
		return err
	}},
	{"returns another error", "not an argument error", func(*kernels.Ctx, kernels.Args) error { return errors.New("odd") }},
	{"replaces its out", "with 0 bytes", func(c *kernels.Ctx, a kernels.Args) error {
		a.Tensor(1).Data = nil
		return nil
	}},
	{"outgrows its out", "resized to float32 9x9", func(c *kernels.Ctx, a kernels.Args) error {
		out := a.Tensor(1)
		*out = *tensor.New(tensor.Float32, 9, 9)
		return nil
	}},
	{"turns its out", "turned from float32 2x2 into int8 2x2", func(c *kernels.Ctx, a kernels.Args) error {
		a.Tensor(1).DType = tensor.Int8
		return nil
	}},
	{"fails the second time", "the second got 1, want 2", func(c *kernels.Ctx, a kernels.Args) error {
		if n := kernels.Keep[int](c); *n > 0 {
			return kernels.Bad(-1, "1", "2")
		} else {
			*n++
		}
		return twice(c, a)
	}},
}

func TestSuiteFindsWhatIsBroken(t *testing.T) {
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			c := Case{Op: "test::twice.out",
				Args: []any{tensor.Of([]float32{1, 2, 3, 4}, 2, 2)},
				Want: []any{tensor.Of([]float32{2, 4, 6, 8}, 2, 2)}}
			k, err := c.call(twiceOp(b.f))
			if err != nil {
				t.Fatal(err)
			}
			ctx := kernels.NewCtx(nil)
			refused, err := k.run(ctx)
			if err == nil {
				err = k.twice(ctx, refused)
			}
			if (err == nil) != (b.says == "") || err != nil && !strings.Contains(err.Error(), b.says) {
				t.Errorf("got %v, want %q", err, b.says)
			}
		})
	}
}

func TestGuardsFindEveryStrayByte(t *testing.T) {
	g := guard(tensor.Of([]float32{1, 2}, 2), firstPoison, true)
	for i := range g.memory {
		inside := i >= band && i < band+8
		g.memory[i]++
		if got := g.intact() == nil; got != inside {
			t.Errorf("byte %d written: intact %v, want %v", i-band, got, inside)
		}
		g.memory[i]--
	}
}

func TestRun(t *testing.T) {
	x := tensor.Of([]float32{1, -2, 3, float32(math.NaN())}, 2, 2)
	channels := tensor.Make(tensor.Float32, []int{2, 2}, []uint8{1, 0}, tensor.Static)
	Run(t, twiceOp(twice),
		Case{Name: "values", Op: "test::twice.out", Args: []any{x},
			Want: []any{tensor.Of([]float32{2, -4, 6, float32(math.NaN())}, 2, 2)}},
		Case{Name: "refused", Op: "test::twice.out", Args: []any{tensor.New(tensor.Int8, 3)},
			Outs: []any{tensor.New(tensor.Float32, 3)}, Refused: "got int8"},
		Case{Name: "static out of other sizes", Op: "test::twice.out", Args: []any{x},
			Outs: []any{tensor.New(tensor.Float32, 2, 3)}, Refused: "cannot resize to 2x2"},
	)
	c := Case{Op: "test::twice.out", Args: []any{tensor.Of([]float32{1, 2, 3, 4}, 2, 2)},
		Outs: []any{channels}, Want: []any{tensor.Of([]float32{2, 6, 4, 8}, 2, 2)}}
	if err := c.check(twiceOp(twice), kernels.NewCtx(nil)); err != nil {
		t.Errorf("out of another dim order: %v", err)
	}
}

func TestNoAllocsCounts(t *testing.T) {
	c := Case{Op: "test::twice.out", Args: []any{tensor.New(tensor.Float32, 4)}, Want: []any{tensor.New(tensor.Float32, 4)}}
	for name, want := range map[string]float64{"none": 0, "one": 1} {
		n, err := allocations(&c, twiceOp(func(ctx *kernels.Ctx, a kernels.Args) error {
			if want > 0 {
				sink = make([]byte, 8)
			}
			return twice(ctx, a)
		}), kernels.NewCtx(nil))
		if err != nil || n != want {
			t.Errorf("%s: %v allocations, error %v, want %v", name, n, err, want)
		}
	}
}

func TestRandomCallsReachTheOperator(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	accepted, n := 0, 2000
	for range n {
		ok, err := attempt(twiceOp(twice), "test::twice.out", seed(random))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			accepted++
		}
	}
	if accepted < n/20 || accepted > n*9/10 {
		t.Errorf("%d of %d random calls accepted, want both kinds", accepted, n)
	}
	found := 0
	for range n {
		if _, err := attempt(twiceOp(broken[3].f), "test::twice.out", seed(random)); err != nil {
			found++
		}
	}
	if found == 0 {
		t.Errorf("an unwritten element was not found in %d calls", n)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		op   kernels.Op
		says string
	}{
		{kernels.Op{Schema: "a::b(Tensor self, *, Tensor(a!) out)", Func: twice, DTypes: "all"}, ""},
		{kernels.Op{Schema: "a::b(Tensor self, *, Tensor(a!) out)", DTypes: "all"}, "no function"},
		{kernels.Op{Schema: "a::b(Tensor self, *, Tensor(a!) out)", Func: twice}, "no element types"},
		{kernels.Op{Schema: "a::b(Tensor self)", Func: twice, DTypes: "all"}, "neither an out"},
		{kernels.Op{Schema: "a::b(Tensor self) -> SymInt", Func: twice, DTypes: "all"}, ""},
		{kernels.Op{Schema: "a::b(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", Func: twice, DTypes: "all"}, "both"},
	} {
		op, sig, _, err := kernels.NewSet([]kernels.Op{c.op}).Lookup("a::b")
		if err == nil {
			err = checkRow(op, sig)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.op.Schema, err, c.says)
		}
	}
}

// TestAgree checks that implementations with different results are detected.
func TestAgree(t *testing.T) {
	floats := func(v ...float64) *tensor.Tensor { return FromDense(tensor.Float32, []int{2, 2}, nil, v) }
	whole := func(v ...float64) *tensor.Tensor { return FromDense(tensor.Int8, []int{2, 2}, nil, v) }
	for _, c := range []struct {
		name      string
		got, want *tensor.Tensor
		agree     bool
	}{
		{"equal", floats(1, 2, 3, 4), floats(1, 2, 3, 4), true},
		{"another order of additions", floats(1.003, 2, 3, 4), floats(1, 2, 3, 4), true},
		{"one wrong", floats(1, 2, 3.01, 4), floats(1, 2, 3, 4), false},
		{"transposed memory", FromDense(tensor.Float32, []int{2, 2}, []uint8{1, 0}, []float64{1, 2, 3, 4}), floats(1, 2, 3, 4), true},
		{"transposed", floats(1, 3, 2, 4), floats(1, 2, 3, 4), false},
		{"another rounding", whole(1, 2, 3, 5), whole(1, 2, 3, 4), true},
		{"whole number wrong", whole(1, 2, 3, 6), whole(1, 2, 3, 4), false},
	} {
		if err := agree(c.got, c.want); (err == nil) != c.agree {
			t.Errorf("%s: agreement is %v, error %v", c.name, c.agree, err)
		}
	}
}

// TestExpectedIsDemanded checks that a row without an expected value, and one that computes something else, are errors.
func TestExpectedIsDemanded(t *testing.T) {
	x := tensor.Of([]float32{1, 2}, 2)
	for _, c := range []struct {
		schema string
		cases  []Case
		says   string
	}{
		{"a::twice.out(Tensor self, *, Tensor(a!) out)", nil, "no expected value"},
		{"a::twice.out(Tensor self, *, Tensor(a!) out)", []Case{{Op: "a::twice.out", Args: []any{x}, Refused: "no"}}, "no expected value"},
		{"a::twice.out(Tensor self, *, Tensor(a!) out)", []Case{{Op: "a::twice.out", Args: []any{x}, Want: []any{tensor.Of([]float32{2, 4}, 2)}}}, ""},
		{"aten::_neg_view_copy.out(Tensor self, *, Tensor(a!) out)", nil, "differ"},
	} {
		set := kernels.NewSet([]kernels.Op{{Schema: c.schema, Func: twice, DTypes: "all"}})
		name := set.Names()[0]
		_, sig, _, err := set.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		err = checkExpected(set, name, sig, c.cases)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.schema, err, c.says)
		}
	}
}
