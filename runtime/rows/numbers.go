package rows

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// dependence says how a number depends on the number of rows.
type dependence uint8

const (
	fixed  dependence = iota // not at all
	perRow                   // it is so many for each row
	varies                   // in another way
)

// result returns how the number that a step computes depends on the number of rows.
func (c *call) result() dependence {
	switch name := c.s.Sig.Name; name {
	case "aten::sym_size.int":
		rows := c.rowsOf(c.s.Args[0])
		dim, ok := c.number(c.s.Args[1])
		if dim < 0 {
			dim += int64(len(c.sizes(c.s.Args[0])))
		}
		switch {
		case rows == None || ok && int(dim) != rows:
			return fixed
		case ok:
			return perRow
		}
		return varies
	case "aten::sym_numel":
		if c.rowsOf(c.s.Args[0]) != None {
			return perRow
		}
		return fixed
	}
	for _, v := range c.s.Reads {
		if c.rowsOf(v) != None {
			return varies
		}
	}
	return c.computed()
}

// computed is result for an operator on numbers.
func (c *call) computed() dependence {
	var of [2]dependence
	some := false
	for p := range c.s.Sig.Args {
		if d := c.counted(c.s.Args[p]); d != fixed {
			some = true
			if p > 1 || d == varies {
				return varies
			}
			of[p] = d
		}
	}
	switch name := c.s.Sig.Name; {
	case !some:
		return fixed
	case name == "executorch_prim::mul.Scalar" && of[0] != of[1]:
		return perRow
	case (name == "executorch_prim::add.Scalar" || name == "executorch_prim::sub.Scalar") && of[0] == of[1]:
		return perRow
	}
	return varies
}

// slot returns the value of a number that a step computes; ok is false if it computes tensors.
func slot(m *ir.Method, s *ir.Step) (v int, ok bool) {
	if s.Kind != ir.KernelCall || s.Sig.Result == nil || s.Sig.Result.Alias || len(s.Args) == 0 {
		return 0, false
	}
	v = s.Args[len(s.Args)-1]
	return v, m.Values[v].Kind != tensor.KindTensor
}
