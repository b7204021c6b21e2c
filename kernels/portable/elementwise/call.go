package elementwise

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// table contains an operator's kernel for each compute type. The operator does not accept types whose kernel is nil.
type table struct {
	f32 kernel[float32]
	// rows32 is f32 for a second operand with one element for each row of block.run, or nil. Operands that commute are
	// exchanged for it.
	rows32   kernel[float32]
	commutes bool

	f64 kernel[float64]
	i32 kernel[int32] // nil where i64 serves narrow integers too
	i64 kernel[int64]
	c   kernel[complex128]

	test    bool // the kernels answer a question: they write block.test
	convert bool // elements are only converted, where there is no kernel
	cost    int  // of a float32 element, in additions; 0 counts as 1
}

// call is one call: the tensors in the roles in which kernels read them.
type call struct {
	in      [maxIn + 1]arg // operands, the last one a mask; an arg without a tensor is left out
	out     arg
	compute tensor.DType // Float32, Float64, Int32, Int64 or Complex128
	num     [3]kernels.Scalar
	divisor int // the argument to blame where a kernel reports a fault
}

// operandNum is the index of the number that replaces an operand without a tensor.
const operandNum = 2

// arg is a tensor and the index of its argument.
type arg struct {
	*tensor.Tensor
	i      int
	number bool // instead of a tensor the operand is num[operandNum]
}

func tensorArg(a kernels.Args, i int) arg { return arg{Tensor: a.OptTensor(i), i: i} }

// outArg returns the out argument of an operator that has one: the last before the result.
func outArg(a kernels.Args) arg { return tensorArg(a, len(a)-2) }

// commonType returns the type that the operands promote to.
func (cl *call) commonType() tensor.DType {
	types := NewResultType()
	for _, x := range cl.in[:maxIn] {
		switch {
		case x.number:
			types.Number(cl.num[operandNum])
		case x.Tensor != nil:
			types.Tensor(x.Tensor)
		}
	}
	return types.Result()
}

// resolve finds the compute type of the operands, and checks that a result of their
// common type may be stored.
func (cl *call) resolve(r rule, test bool) error { return cl.resolveAs(cl.commonType(), r, test) }

func (cl *call) resolveAs(common tensor.DType, r rule, test bool) (err error) {
	compute, ok := r.compute(common)
	if !ok {
		return cl.badTypes()
	}
	cl.compute = compute
	cl.num[operandNum] = wrap(cl.num[operandNum], common)
	result := common
	if compute.IsFloat() && !common.IsFloat() {
		result = compute
	}
	if !test && !tensor.CanCast(result, cl.out.DType) {
		return kernels.Badf(cl.out.i, "a type that "+result.String()+" results are stored as", "%v", cl.out.DType)
	}
	return nil
}

// badTypes names the operands' types.
func (cl *call) badTypes() error {
	first, got := -1, ""
	for _, x := range cl.in[:maxIn] {
		if x.Tensor == nil {
			continue
		}
		if first < 0 {
			first, got = x.i, x.DType.String()
		} else {
			got += " and " + x.DType.String()
		}
	}
	return kernels.Bad(first, got, "types that the operator computes on")
}

// run resizes the out argument to the broadcast shape of the operands and computes it, now and in every run with the
// same shapes.
func (t *table) run(c *kernels.Ctx, a kernels.Args, cl *call) error {
	again, err := t.start(c, a, cl)
	if err == nil {
		c.Repeat(again)
	}
	return err
}

// start is run for a call that cannot be repeated.
func (t *table) start(c *kernels.Ctx, a kernels.Args, cl *call) (kernels.Repeater, error) {
	var buf [tensor.MaxRank]int
	sizes, err := broadcast(buf[:0], cl)
	if err != nil {
		return nil, err
	}
	if err := kernels.ResizeOut(a, cl.out.i, sizes); err != nil {
		return nil, err
	}
	return t.compute(c, cl)
}

// compute computes the out argument, which the operands broadcast to.
func (t *table) compute(c *kernels.Ctx, cl *call) (kernels.Repeater, error) {
	switch {
	case cl.compute == tensor.Float32:
		return run(c, cl, t, t.f32, t.rows32, convFloat32)
	case cl.compute == tensor.Float64:
		return run(c, cl, t, t.f64, nil, convFloat64)
	case cl.compute == tensor.Int32 && (t.i32 != nil || t.convert):
		return run(c, cl, t, t.i32, nil, convInt32)
	case cl.compute == tensor.Int32, cl.compute == tensor.Int64:
		return run(c, cl, t, t.i64, nil, convInt64)
	}
	return run(c, cl, t, t.c, nil, convComplex)
}

func run[C compute](c *kernels.Ctx, cl *call, t *table, k, rows kernel[C], conv *converter[C]) (*loop[C], error) {
	if k == nil && !t.convert {
		return nil, cl.badTypes()
	}
	l := kernels.Keep[loop[C]](c)
	l.kernel, l.rows, l.commutes, l.test, l.conv = k, rows, t.commutes, t.test, conv
	return l, l.run(c, cl, t.cost)
}

// run runs the kernel on the call's tensors.
func (l *loop[C]) run(c *kernels.Ctx, cl *call, cost int) error {
	l.n, l.divisor = cl.out.Numel(), cl.divisor
	if l.n == 0 {
		return nil
	}
	if err := l.set(cl); err != nil {
		return err
	}
	l.grain, l.loaded = l.grainOf(cost), false
	l.start(c, cl)
	err := l.Repeat(c)
	l.loaded = l.direct && l.kernel != nil && l.n <= l.grain
	return err
}

// Repeat computes the same tensors again.
func (l *loop[C]) Repeat(c *kernels.Ctx) error {
	switch {
	case l.n == 0:
		return nil
	case l.loaded:
		l.kernel(&l.used[0].block)
	case l.direct:
		c.Parallel(l.n, l.grain, l)
	default:
		l.scratch = kernels.Scratch[uint8](c, len(l.used)*workerBytes[C]())
		c.Parallel(l.n, l.grain, l)
	}
	if l.faulty() {
		return kernels.Bad(l.divisor, "an integer 0", "divisors other than 0")
	}
	return nil
}

func badType(x arg) error {
	return kernels.Bad(x.i, x.DType.String(), "a type that the operator computes on")
}

// set describes the operands, the result and their conversions.
func (l *loop[C]) set(cl *call) error {
	l.direct, l.out = true, cl.out.Data
	l.outType, l.outSize = cl.out.DType, cl.out.DType.Size()
	for i, in := range cl.in {
		l.in[i].layout = absent
		if in.number {
			l.in[i] = operand{layout: single}
			l.direct = false
		}
		if in.Tensor == nil {
			continue
		}
		l.in[i].set(in.Tensor, cl.out.Tensor)
		l.direct = l.direct && l.in[i].layout == dense
		if i == maskIn {
			break
		}
		l.in[i].byRows()
		if !l.conv.knows(in.DType) {
			return badType(in)
		}
		l.load[i] = l.conv.load[in.DType]
		l.direct = l.direct && l.load[i] == nil
	}
	if !l.conv.knows(l.outType) {
		return badType(cl.out)
	}
	l.store = l.conv.store[l.outType]
	l.into = l.kernel == nil && l.store == nil && l.in[0].layout == dense
	if l.test {
		l.direct = l.direct && l.outType == tensor.Bool
	} else {
		l.direct = l.direct && l.store == nil
	}
	return nil
}

// start initializes the workers' numbers.
func (l *loop[C]) start(c *kernels.Ctx, cl *call) {
	if l.workers == nil {
		l.workers = make([]worker[C], c.Threads())
	}
	used := 1
	if l.n > l.grain {
		used = len(l.workers)
	}
	l.used = l.workers[:used]
	for i := range l.used {
		w := &l.used[i]
		for j := range cl.num {
			if s := &cl.num[j]; s.Type != 0 { // a Scalar that is set is an int64, double or bool
				w.num[j] = number[C](*s)
			}
		}
	}
	l.scratch = nil
	l.cut()
}

// grainOf returns the minimum number of elements of a range.
func (l *loop[C]) grainOf(cost int) int {
	cost = max(cost, 1)
	if !l.direct || sizeOf[C]() > 4 { // conversions cost as much as some additions, and so do wider types
		cost += 4
	}
	return cpu.Grain(cost, additionCost)
}

// faulty reports, once, whether a worker met an element that cannot be computed.
func (l *loop[C]) faulty() (met bool) {
	for i := range l.used {
		met = met || l.used[i].fault
		l.used[i].fault = false
	}
	return met
}

// broadcast computes the shape of the result (NumPy's rules) into dst.
func broadcast(dst []int, cl *call) ([]int, error) {
	for _, x := range cl.in {
		if x.Tensor == nil {
			continue
		}
		var ok bool
		if dst, ok = strided.Broadcast(dst, x.Sizes); !ok {
			return nil, kernels.Badf(x.i, "sizes that broadcast with the other operands'", "sizes %v", x.Sizes)
		}
	}
	return dst, nil
}
