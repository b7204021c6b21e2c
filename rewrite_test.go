//go:build linux

package etrun

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// sample is a small method that a case of TestRewriteCases writes: values x and z are its
// inputs, s is state.
type sample struct {
	*flowProgram
	l       *floats
	x, z, s int
}

func newSample() *sample {
	l := &floats{ops: make(map[string]int), scalars: make(map[float32]int)}
	c := &sample{flowProgram: &flowProgram{language: l}, l: l}
	c.m.Chains = make([]pte.Chain, 1)
	c.x, c.z, c.s = c.value(), c.value(), c.value()
	c.m.Inputs = []int{c.x, c.z}
	c.m.Values[c.s].Tensor.Storage, c.m.Values[c.s].Tensor.Data = pte.PlannedInit, make([]byte, cubeBytes)
	return c
}

// sized is a new tensor of other sizes.
func (c *sample) sized(sizes ...int) int {
	v := c.value()
	t := c.m.Values[v].Tensor
	t.Sizes, t.DimOrder = sizes, tensor.ContiguousOrder(len(sizes))
	c.l.offset += t.NBytes()
	return v
}

// to calls an operator whose out is given; of calls one with a new out.
func (c *sample) to(out int, name string, args ...int) int {
	c.l.do(c.flowProgram, name, append(args, out, out)...)
	return out
}

func (c *sample) of(name string, args ...int) int { return c.to(c.value(), name, args...) }

func (c *sample) neg(v int) int            { return c.of("aten::neg.out", v) }
func (c *sample) alias(v int) int          { return c.of("aten::alias_copy.out", v) }
func (c *sample) scalar(x float32) int     { return c.l.scalar(c.flowProgram, x) }
func (c *sample) add(a, b int) int         { return c.of("aten::add.out", a, b, c.number(1)) }
func (c *sample) mul(a, b int) int         { return c.of("aten::mul.out", a, b) }
func (c *sample) div(a int, n float32) int { return c.of("aten::div.out", a, c.scalar(n)) }
func (c *sample) sigmoid(v int) int        { return c.of("aten::sigmoid.out", v) }
func (c *sample) copy(to, from int) {
	c.l.do(c.flowProgram, "aten::copy_", to, from, c.truth(false), to)
}

func (c *sample) permute(v int, order ...int64) int {
	return c.of("aten::permute_copy.out", v, c.numbers(order...))
}

func (c *sample) clamp(v, low, high int) int { return c.of("aten::clamp.out", v, low, high) }

// gate is clamp(v+3, 0, 6).
func (c *sample) gate(v int) int {
	return c.clamp(c.clamp(c.add(v, c.scalar(3)), c.number(0), c.nothing()), c.nothing(), c.number(6))
}

// conv is a convolution without bias; normed is the batch norm of a value.
func (c *sample) conv(x, weight int, transposed bool, groups int64) int {
	one, none := c.numbers(1), c.numbers(0)
	return c.of("aten::convolution.out", x, weight, c.nothing(), one, none, one, c.truth(transposed), none, c.number(groups))
}

func (c *sample) weight() int { return c.constant([]float32{1, -2, 3, 1}, 2, 2, 1) }

func (c *sample) normed(v int, variance float32) int { return c.normedTo(c.value(), v, variance) }

func (c *sample) normedTo(out, v int, variance float32) int {
	c.m.Values[out].Tensor.Sizes, c.m.Values[out].Tensor.DimOrder = c.m.Values[v].Tensor.Sizes, c.m.Values[v].Tensor.DimOrder
	mean, invStd := c.sized(0), c.sized(0)
	list := c.put(pte.Value{Kind: tensor.KindTensorList, Items: []int{out, mean, invStd}})
	c.l.do(c.flowProgram, "aten::_native_batch_norm_legit_no_training.out", v, c.constant([]float32{1, 2}, 2), c.constant([]float32{3, -1}, 2),
		c.constant([]float32{1, -1}, 2), c.constant([]float32{variance, 0.25}, 2), c.number(0), c.number(0), out, mean, invStd, list)
	return out
}

func (c *sample) matrix(v int) int {
	return c.to(c.sized(4, 2), "aten::view_copy.out", v, c.numbers(4, 2))
}

// rewriteCases are methods, and how many instructions each rewrite shall touch. Each
// gives its outputs.
var rewriteCases = []struct {
	name  string
	build func(c *sample) []int
	want  map[string]int
}{
	{"a copy", func(c *sample) []int { return []int{c.neg(c.alias(c.neg(c.x)))} }, map[string]int{"identity": 1}},
	{"a copy of an input", func(c *sample) []int { return []int{c.neg(c.alias(c.x))} }, map[string]int{"identity": 1}},
	{"a copy of state", func(c *sample) []int { return []int{c.neg(c.alias(c.s))} }, map[string]int{"identity": 1}},
	{"a copy of state that is overwritten", func(c *sample) []int {
		v := c.alias(c.s)
		c.copy(c.s, c.x)
		return []int{c.neg(v)}
	}, nil},
	{"a copy of state that is overwritten later", func(c *sample) []int {
		v := c.neg(c.alias(c.s))
		c.copy(c.s, c.x)
		return []int{v}
	}, map[string]int{"identity": 1}},
	{"a copy of a value that is overwritten", func(c *sample) []int {
		a := c.neg(c.x)
		b := c.alias(a)
		c.to(a, "aten::neg.out", c.z)
		return []int{c.neg(b), c.neg(a)}
	}, nil},
	{"a copy of a value that is updated", func(c *sample) []int {
		a := c.neg(c.x)
		b := c.alias(a)
		c.copy(a, b)
		return []int{c.neg(a)}
	}, nil},
	{"a copy of an input that is overwritten", func(c *sample) []int {
		b := c.alias(c.x)
		c.to(c.x, "aten::neg.out", c.z)
		return []int{c.neg(b)}
	}, nil},
	{"a copy of a view", func(c *sample) []int {
		a := c.neg(c.x)
		v := c.put(cube(c.m.Values[a].Tensor.Offset))
		return []int{c.neg(c.alias(v)), c.neg(a)}
	}, map[string]int{"identity": 1}},
	{"a copy that is an output", func(c *sample) []int { return []int{c.alias(c.neg(c.x))} }, map[string]int{"identity": 1}},
	{"a copy of an input that is an output", func(c *sample) []int { return []int{c.alias(c.x)} }, nil},
	{"a copy of state that is an output", func(c *sample) []int { return []int{c.alias(c.s)} }, nil},
	{"a copy of an output that is one too", func(c *sample) []int {
		a := c.neg(c.x)
		return []int{a, c.alias(a)}
	}, nil},
	{"two copies that are outputs", func(c *sample) []int {
		a := c.neg(c.x)
		return []int{c.alias(a), c.alias(a)}
	}, map[string]int{"identity": 1}},
	{"a copy onto a value with another writer", func(c *sample) []int {
		a := c.alias(c.neg(c.x))
		b := c.neg(a)
		return []int{c.neg(c.to(a, "aten::neg.out", c.z)), b}
	}, nil},
	{"a copy onto state", func(c *sample) []int {
		v := c.neg(c.s)
		c.to(c.s, "aten::alias_copy.out", c.neg(c.x))
		return []int{v}
	}, nil},
	{"a copy onto an input", func(c *sample) []int {
		v := c.neg(c.z)
		c.to(c.z, "aten::alias_copy.out", c.neg(c.x))
		return []int{v, c.neg(c.z)}
	}, nil},
	{"a copy of a tensor that varies", func(c *sample) []int {
		a := c.neg(c.x)
		b := c.alias(a)
		for _, v := range []int{a, b} {
			c.m.Values[v].Tensor.Dynamism = tensor.DynamicBound
		}
		return []int{c.neg(b)}
	}, nil},
	{"movements that differ in a number of a list only", func(c *sample) []int {
		roll := func(shift int64) int {
			return c.neg(c.of("aten::roll.out", c.neg(c.x), c.numbers(shift), c.numbers(2)))
		}
		return []int{roll(1), roll(0), roll(1), roll(0)}
	}, map[string]int{"identity": 2}},
	{"a chain of copies", func(c *sample) []int { return []int{c.neg(c.alias(c.alias(c.alias(c.neg(c.x)))))} }, map[string]int{"identity": 3}},
	{"other sizes, same bytes", func(c *sample) []int {
		return []int{c.to(c.sized(4, 2), "aten::neg.out", c.matrix(c.neg(c.x)))}
	}, map[string]int{"identity": 1}},
	{"a part", func(c *sample) []int {
		return []int{c.to(c.sized(1, 2, 2), "aten::slice_copy.Tensor_out", c.x, c.number(0), c.number(0), c.number(1), c.number(1))}
	}, nil},
	{"an expansion", func(c *sample) []int {
		a := c.to(c.sized(1, 2, 2), "aten::slice_copy.Tensor_out", c.x, c.number(0), c.number(0), c.number(1), c.number(1))
		return []int{c.neg(c.of("aten::expand_copy.out", a, c.numbers(2, 2, 2), c.truth(false)))}
	}, nil},
	{"a pad on one side, a cut on the other", func(c *sample) []int {
		return []int{c.neg(c.of("aten::constant_pad_nd.out", c.x, c.numbers(1, -1), c.number(0)))}
	}, nil},
	{"a permutation", func(c *sample) []int { return []int{c.neg(c.permute(c.x, 2, 0, 1))} }, nil},
	{"inverse permutations", func(c *sample) []int {
		return []int{c.neg(c.permute(c.permute(c.x, 2, 0, 1), 1, 2, 0))}
	}, map[string]int{"identity": 1, "dead": 1}},
	{"inverse permutations, both read", func(c *sample) []int {
		a := c.permute(c.x, 2, 0, 1)
		return []int{c.neg(c.permute(a, 1, 2, 0)), c.neg(a)}
	}, map[string]int{"identity": 1}},
	{"permutations that are not inverse", func(c *sample) []int {
		return []int{c.neg(c.permute(c.permute(c.x, 2, 0, 1), 2, 1, 0))}
	}, nil},
	{"three permutations", func(c *sample) []int {
		return []int{c.neg(c.permute(c.permute(c.permute(c.x, 2, 0, 1), 2, 0, 1), 2, 0, 1))}
	}, map[string]int{"permutations": 2, "identity": 1, "dead": 1}},
	{"inverse permutations of what is overwritten", func(c *sample) []int {
		a := c.neg(c.x)
		b := c.permute(a, 2, 0, 1)
		c.to(a, "aten::neg.out", c.z)
		return []int{c.neg(c.permute(b, 1, 2, 0)), c.neg(a)}
	}, nil},

	{"permutations that are one transposition", func(c *sample) []int {
		return []int{c.neg(c.permute(c.permute(c.x, 1, 0, 2), 0, 2, 1))} // 1, 2, 0
	}, map[string]int{"permutations": 2}},
	{"permutations by names", func(c *sample) []int {
		a := c.of("aten::transpose_copy.int_out", c.x, c.number(0), c.number(-2))
		return []int{c.neg(c.of("aten::transpose_copy.int_out", a, c.number(-1), c.number(1)))}
	}, map[string]int{"permutations": 2}},
	{"permutations that are more than a transposition", func(c *sample) []int {
		return []int{c.neg(c.permute(c.permute(c.x, 1, 2, 0), 1, 0, 2))} // 2, 1, 0
	}, nil},
	{"permutations, both read", func(c *sample) []int {
		a := c.permute(c.x, 1, 0, 2)
		return []int{c.neg(c.permute(a, 0, 2, 1)), c.neg(a)}
	}, nil},
	{"permutations, the first an output", func(c *sample) []int {
		a := c.permute(c.x, 1, 0, 2)
		return []int{c.neg(c.permute(a, 0, 2, 1)), a}
	}, nil},
	{"permutations of what is overwritten", func(c *sample) []int {
		a := c.neg(c.x)
		b := c.permute(a, 1, 0, 2)
		c.to(a, "aten::neg.out", c.z)
		return []int{c.neg(c.permute(b, 0, 2, 1)), c.neg(a)}
	}, nil},
	{"permutations of a tensor that varies", func(c *sample) []int {
		a := c.permute(c.x, 1, 0, 2)
		b := c.permute(a, 0, 2, 1)
		for _, v := range []int{a, b} {
			c.m.Values[v].Tensor.Dynamism = tensor.DynamicBound
		}
		return []int{b}
	}, map[string]int{"permutations": 2}},

	{"times 1", func(c *sample) []int { return []int{c.neg(c.mul(c.x, c.scalar(1)))} }, map[string]int{"neutral": 1}},
	{"1 times", func(c *sample) []int { return []int{c.neg(c.mul(c.scalar(1), c.x))} }, map[string]int{"neutral": 1}},
	{"times 2", func(c *sample) []int { return []int{c.neg(c.mul(c.x, c.scalar(2)))} }, nil},
	{"by 1", func(c *sample) []int { return []int{c.neg(c.div(c.x, 1))} }, map[string]int{"neutral": 1}},
	{"minus 0", func(c *sample) []int { return []int{c.neg(c.of("aten::sub.out", c.x, c.scalar(0), c.number(1)))} }, map[string]int{"neutral": 1}},
	{"plus 0", func(c *sample) []int { return []int{c.neg(c.add(c.x, c.scalar(0)))} }, nil},
	{"times ones", func(c *sample) []int {
		return []int{c.neg(c.mul(c.x, c.constant([]float32{1, 1, 1, 1, 1, 1, 1, 1}, 2, 2, 2)))}
	}, nil},

	{"nobody reads it", func(c *sample) []int {
		c.neg(c.sigmoid(c.x))
		return []int{c.neg(c.x)}
	}, map[string]int{"dead": 2}},
	{"overwritten unread", func(c *sample) []int {
		a := c.sigmoid(c.x)
		return []int{c.to(a, "aten::neg.out", c.z)}
	}, map[string]int{"dead": 1}},
	{"the next execute reads it", func(c *sample) []int {
		v := c.neg(c.s)
		c.to(c.s, "aten::sigmoid.out", c.x)
		return []int{v}
	}, nil},

	{"batch norm", func(c *sample) []int { return []int{c.normed(c.conv(c.x, c.weight(), false, 1), 1)} }, map[string]int{"batch norm": 2}},
	{"batch norm of a transposed convolution", func(c *sample) []int {
		return []int{c.normed(c.conv(c.x, c.weight(), true, 1), 1)}
	}, map[string]int{"batch norm": 2}},
	{"batch norm of a convolution in groups", func(c *sample) []int {
		return []int{c.normed(c.conv(c.x, c.constant([]float32{2, -3}, 2, 1, 1), false, 2), 1)}
	}, map[string]int{"batch norm": 2}},
	{"batch norm of a transposed convolution in groups", func(c *sample) []int {
		return []int{c.normed(c.conv(c.x, c.constant([]float32{2, -3}, 2, 1, 1), true, 2), 1)}
	}, nil},
	{"batch norm of addmm", func(c *sample) []int {
		y := c.to(c.sized(4, 2), "aten::addmm.out", c.constant([]float32{1, 2}, 2), c.matrix(c.neg(c.x)), c.constant([]float32{1, 2, 3, 4}, 2, 2), c.number(1), c.number(1))
		return []int{c.normed(y, 1)}
	}, map[string]int{"batch norm": 2, "identity": 1}},
	{"batch norm of a scaled addmm", func(c *sample) []int {
		y := c.to(c.sized(4, 2), "aten::addmm.out", c.constant([]float32{1, 2}, 2), c.matrix(c.neg(c.x)), c.constant([]float32{1, 2, 3, 4}, 2, 2), c.number(1), c.number(2))
		return []int{c.normed(y, 1)}
	}, map[string]int{"identity": 1}},
	{"batch norm of linear", func(c *sample) []int {
		y := c.to(c.sized(4, 2), "aten::linear.out", c.matrix(c.neg(c.x)), c.constant([]float32{1, 2, 3, 4}, 2, 2), c.nothing())
		return []int{c.normed(y, 1)}
	}, map[string]int{"batch norm": 2, "identity": 1}},
	{"batch norm of what another one reads", func(c *sample) []int {
		y := c.conv(c.x, c.weight(), false, 1)
		return []int{c.normed(y, 1), c.neg(y)}
	}, nil},
	{"batch norm of an output", func(c *sample) []int {
		y := c.conv(c.x, c.weight(), false, 1)
		return []int{c.normed(y, 1), y}
	}, nil},
	{"batch norm of a weight that varies", func(c *sample) []int {
		w := c.to(c.sized(2, 2, 1), "aten::slice_copy.Tensor_out", c.x, c.number(2), c.number(0), c.number(1), c.number(1))
		return []int{c.normed(c.conv(c.x, w, false, 1), 1)}
	}, nil},
	{"batch norm without a variance", func(c *sample) []int { return []int{c.normed(c.conv(c.x, c.weight(), false, 1), 0)} }, nil},
	{"batch norm whose mean is read", func(c *sample) []int {
		out := c.normed(c.conv(c.x, c.weight(), false, 1), 1)
		mean := c.m.Chains[0].Instructions[c.next()-1].Args[8]
		return []int{out, c.to(c.sized(0), "aten::neg.out", mean)}
	}, nil},
	{"batch norm of no layer", func(c *sample) []int { return []int{c.normed(c.neg(c.x), 1)} }, nil},
	{"batch norm onto what is read before", func(c *sample) []int {
		out := c.neg(c.x)
		y := c.conv(c.z, c.weight(), false, 1)
		v := c.neg(out)
		return []int{c.normedTo(out, y, 1), v}
	}, nil},
	{"batch norm into state", func(c *sample) []int {
		y := c.conv(c.x, c.weight(), false, 1)
		v := c.neg(c.s)
		c.normedTo(c.s, y, 1)
		return []int{v}
	}, nil},

	{"silu", func(c *sample) []int { return []int{c.mul(c.x, c.sigmoid(c.x))} }, map[string]int{"silu": 2}},
	{"silu, exchanged", func(c *sample) []int { return []int{c.mul(c.sigmoid(c.x), c.x)} }, map[string]int{"silu": 2}},
	{"silu of another value", func(c *sample) []int { return []int{c.mul(c.x, c.sigmoid(c.z))} }, nil},
	{"silu and sigmoid", func(c *sample) []int {
		v := c.sigmoid(c.x)
		return []int{c.mul(c.x, v), c.neg(v)}
	}, nil},
	{"silu and an output", func(c *sample) []int {
		v := c.sigmoid(c.x)
		return []int{c.mul(c.x, v), v}
	}, nil},
	{"silu of what is overwritten", func(c *sample) []int {
		a := c.neg(c.x)
		v := c.sigmoid(a)
		c.to(a, "aten::neg.out", c.z)
		return []int{c.mul(a, v)}
	}, nil},
	{"the square of a sigmoid", func(c *sample) []int {
		v := c.sigmoid(c.x)
		return []int{c.mul(v, v)}
	}, nil},

	{"hardswish", func(c *sample) []int { return []int{c.div(c.mul(c.x, c.gate(c.x)), 6)} }, map[string]int{"hardswish": 5}},
	{"hardswish with one clamp", func(c *sample) []int {
		return []int{c.div(c.mul(c.clamp(c.add(c.x, c.scalar(3)), c.number(0), c.number(6)), c.x), 6)}
	}, map[string]int{"hardswish": 4}},
	{"hardswish with relu", func(c *sample) []int {
		return []int{c.div(c.mul(c.clamp(c.of("aten::relu.out", c.add(c.x, c.scalar(3))), c.nothing(), c.number(6)), c.x), 6)}
	}, map[string]int{"hardswish": 5}},
	{"hardswish with numbers", func(c *sample) []int {
		a := c.of("aten::hardtanh.out", c.of("aten::add.Scalar_out", c.x, c.number(3), c.number(1)), c.number(0), c.number(6))
		return []int{c.of("aten::div.Scalar_out", c.mul(a, c.x), c.number(6))}
	}, map[string]int{"hardswish": 4}},
	{"hardsigmoid", func(c *sample) []int { return []int{c.div(c.gate(c.x), 6)} }, nil},
	{"hardswish by 5", func(c *sample) []int { return []int{c.div(c.mul(c.x, c.gate(c.x)), 5)} }, nil},
	{"hardswish of two values", func(c *sample) []int { return []int{c.div(c.mul(c.z, c.gate(c.x)), 6)} }, nil},
	{"hardswish up to 5", func(c *sample) []int {
		return []int{c.div(c.mul(c.x, c.clamp(c.add(c.x, c.scalar(3)), c.number(0), c.number(5))), 6)}
	}, nil},
	{"hardswish from 2", func(c *sample) []int {
		return []int{c.div(c.mul(c.x, c.clamp(c.add(c.x, c.scalar(2)), c.number(0), c.number(6))), 6)}
	}, nil},
	{"hardswish with a factor", func(c *sample) []int {
		a := c.of("aten::add.out", c.x, c.scalar(3), c.number(2))
		return []int{c.div(c.mul(c.x, c.clamp(a, c.number(0), c.number(6))), 6)}
	}, nil},
	{"hardswish and its gate", func(c *sample) []int {
		g := c.gate(c.x)
		return []int{c.div(c.mul(c.x, g), 6), g}
	}, nil},
	{"hardswish of what is overwritten", func(c *sample) []int {
		a := c.neg(c.x)
		v := c.mul(a, c.gate(a))
		c.to(a, "aten::neg.out", c.z)
		return []int{c.div(v, 6), c.neg(a)}
	}, nil},
	{"hardswish of a copy of what is overwritten", func(c *sample) []int {
		a := c.neg(c.x)
		b := c.alias(a)
		v := c.mul(b, c.gate(b))
		c.to(a, "aten::neg.out", c.z)
		return []int{c.div(v, 6), c.neg(a)}
	}, map[string]int{"identity": 1}},
}

// TestRewriteCases checks what is rewritten and what must not be, and executes both.
func TestRewriteCases(t *testing.T) {
	for _, tt := range rewriteCases {
		t.Run(tt.name, func(t *testing.T) {
			c := newSample()
			c.m.Outputs = tt.build(c)
			c.m.Name, c.m.Arenas = "forward", []pte.Arena{{Size: c.l.offset + cubeBytes}}
			counts := make(map[string]int)
			if err := compareLowered(&c.m, 1, counts); err != nil {
				t.Fatal(err)
			}
			if counts[""] == 0 {
				t.Fatal("the method does not load")
			}
			delete(counts, "")
			if !maps.Equal(counts, tt.want) {
				t.Errorf("rewritten: %v, want %v", counts, tt.want)
			}
		})
	}
}

// An output that was a copy stays what it was when inputs and other outputs change.
func TestOutputsStayApart(t *testing.T) {
	c := newSample()
	c.m.Outputs = []int{c.alias(c.x), c.alias(c.neg(c.z))}
	c.m.Name, c.m.Arenas = "forward", []pte.Arena{{Size: c.l.offset + cubeBytes}}
	m, err := loadFloats(&c.m, LowerAuto)
	if err != nil {
		t.Fatal(err)
	}
	setCubes(m, 1, 0)
	if err := m.Execute(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(outputTensor(m, 0).Data, outputTensor(m, 1).Data)
	setCubes(m, 1, 1)
	if got := fmt.Sprint(outputTensor(m, 0).Data, outputTensor(m, 1).Data); got != want {
		t.Errorf("after the inputs were set: got %s, want %s", got, want)
	}
}
