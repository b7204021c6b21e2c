package npu

import (
	"math/bits"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Elementwise modes (field elementwise_mode).
const (
	opMul    = 0
	opAdd    = 1
	opSub    = 2
	opMin    = 3
	opMax    = 4
	opLRelu  = 5
	opAbs    = 6
	opCLZ    = 7
	opSHR    = 8
	opSHL    = 9
	opLSR    = 10 // the following are U85 only
	opDiv    = 11
	opEQ     = 16
	opNE     = 17
	opGE     = 18
	opGT     = 19
	opAnd    = 33
	opOr     = 34
	opXor    = 35
	opNot    = 36
	opAndNot = 42
)

// elementwise combines the elements of one or two maps.
type elementwise struct {
	*kernelOp
	mode   int
	unary  bool
	first  operand
	second operand
	shift  rounding // of SHR
	slope  scaling  // of LRELU for negative numbers
}

// operand is an input of an elementwise operation, broadcast along axes of size 1.
type operand struct {
	*fmap
	repeatH, repeatW, repeatC bool
	scaled                    bool
	scale                     scaling
}

// Broadcast bits, the same on all families.
const (
	broadcastH      = 1
	broadcastW      = 2
	broadcastC      = 4
	broadcastScalar = 8    // U85
	operandOrderA   = 0x40 // U55, U65: IFM2 is the first operand
	broadcastConst  = 0x80 // U55, U65: IFM2 is IFM2_SCALAR
)

func (d *decoder) elementwise(s *isa.Step) (operation, error) {
	mode := int(s.Param & 63)
	if table := isa.Lookup(d.config.Family, isa.OpElementwise).Fields[0].Enum; mode >= len(table) || table[mode] == "" {
		return nil, isa.Malformed("elementwise mode %d", mode)
	}
	o, err := d.kernelOutput()
	if err != nil {
		return nil, err
	}
	e := &elementwise{kernelOp: o, mode: mode, shift: o.out.scale.rounding}
	e.unary = mode == opLRelu || mode == opAbs || mode == opCLZ || mode == opNot
	o.unit, o.tile, o.work = e, o.smallTile(), 2*o.out.elements()
	if d.u85 {
		err = e.decodeU85(d)
	} else {
		err = e.decodeU65(d)
	}
	return o, err
}

// input decodes a map that is an operand. broadcast contains the bits of its axes.
func (e *elementwise) input(d *decoder, f *fmap, m *mapRegisters, broadcast int) (operand, error) {
	p := operand{fmap: f, repeatH: broadcast&broadcastH != 0, repeatW: broadcast&broadcastW != 0,
		repeatC: broadcast&broadcastC != 0, scale: unit}
	size := [3]int{e.out.h, e.out.w, e.out.d}
	for i, repeat := range [3]bool{p.repeatH, p.repeatW, p.repeatC} {
		if repeat {
			size[i] = 1
		}
	}
	if err := d.inputMap(f, m, size[0], size[1], size[2]); err != nil {
		return p, err
	}
	what := "IFM"
	if m == &ifm2Registers {
		what = "IFM2"
	}
	e.readsMap(what, f)
	return p, nil
}

func (e *elementwise) decodeU65(d *decoder) error {
	r := &d.regs
	a, err := e.input(d, &e.ifm, &ifmRegisters, 0)
	if err != nil {
		return err
	}
	e.first = a
	e.out.scaled = e.mode <= opSub || e.mode == opAbs
	if e.mode == opLRelu {
		e.slope = e.out.scale
	}
	if e.unary {
		return nil
	}
	broadcast := r.get(isa.IFM2Broadcast)
	if broadcast&broadcastConst != 0 {
		f, err := r.featureMap(&ifm2Registers, false, 1, 1, 1)
		if err != nil {
			return err
		}
		f.storage, f.scalar = isScalar, r.signed(isa.IFM2Scalar, f.signed)
		e.ifm2, e.second = f, operand{fmap: &e.ifm2, scale: unit}
	} else if e.second, err = e.input(d, &e.ifm2, &ifm2Registers, broadcast); err != nil {
		return err
	}
	if broadcast&operandOrderA != 0 {
		e.first, e.second = e.second, e.first
	}
	if e.mode == opAdd || e.mode == opSub {
		return e.scalesU65(d)
	}
	return nil
}

// scalesU65 decodes the scaling of the operands of ADD and SUB (ifm_scale_mode).
func (e *elementwise) scalesU65(d *decoder) error {
	r := &d.regs
	if e.ifm.size == 4 {
		return nil
	}
	shifted := scaling{mult: 1 << 19, rounding: natural}
	if e.ifm.size == 2 {
		shifted.mult = 1 << 14
	}
	opA := scaling{mult: int64(r.word(isa.OPAScale)), shift: uint(r.high(isa.OPAScale, 0, 6)),
		rounding: roundingsU65[r.bits(isa.IFMPrecision, 14, 2)]}
	e.first.scaled, e.second.scaled = true, true
	switch mode := r.bits(isa.IFMPrecision, 8, 2); mode {
	case 0:
		e.first.scale = scaling{mult: int64(r.word(isa.OPAScale) & 0xffff), rounding: natural}
		e.second.scale = scaling{mult: int64(r.word(isa.OPBScale) & 0xffff), rounding: natural}
	case 1:
		e.first.scale, e.second.scale = opA, shifted
	case 2:
		e.first.scale, e.second.scale = shifted, opA
	default:
		return isa.Malformed("scale mode %d", mode)
	}
	return nil
}

func (e *elementwise) decodeU85(d *decoder) error {
	r := &d.regs
	var err error
	if e.first, err = e.input(d, &e.ifm, &ifmRegisters, r.get(isa.IFMBroadcast)); err != nil {
		return err
	}
	if !e.unary {
		if e.second, err = e.input(d, &e.ifm2, &ifm2Registers, r.get(isa.IFM2Broadcast)); err != nil {
			return err
		}
	}
	e.out.scaled = e.mode < opCLZ || e.mode >= opEQ
	switch e.mode {
	case opAdd, opSub, opMin, opMax, opAbs:
		e.first.scaled, e.second.scaled = true, true
	case opLRelu:
		e.first.scaled = true
	default:
		return nil
	}
	if e.first.scale, err = d.inputScale(isa.IFMScale); err != nil || e.mode == opAbs {
		return err
	}
	if e.mode == opLRelu {
		e.slope, err = d.inputScale(isa.IFM2Scale)
		return err
	}
	e.second.scale, err = d.inputScale(isa.IFM2Scale)
	return err
}

// inputScale decodes IFM_SCALE or IFM2_SCALE of the U85.
func (d *decoder) inputScale(c isa.Code) (scaling, error) {
	r := &d.regs
	if n := r.high(c, 6, 5); n != 0 {
		return unit, isa.Unsupported("double rounding of an input at bit %d", n)
	}
	return scaling{mult: int64(r.word(c) & (1<<31 - 1)), shift: uint(r.high(c, 0, 6)),
		rounding: roundingsIFMU85[r.high(c, 13, 1)]}, nil
}

func (e *elementwise) needs() needs {
	n := e.tile * e.out.d
	return needs{patch: n, aux: n, acc: n}
}

func (e *elementwise) accumulate(w *worker, y, x0, x1 int, acc []int64) {
	if e.mode == opLRelu {
		e.leaky(w, y, x0, x1, acc)
		return
	}
	e.first.load(w, acc, e.out.d, y, x0, x1)
	if e.unary {
		combineOne(e.mode, acc)
		return
	}
	second := w.aux[:len(acc)]
	e.second.load(w, second, e.out.d, y, x0, x1)
	e.combine(acc, second)
}

// load fills dst with the operand's elements for the pixels x0 to x1 of row y.
func (p *operand) load(w *worker, dst []int64, d, y, x0, x1 int) {
	if p.storage == isScalar {
		fill(dst, int64(p.scalar)-int64(p.zero))
	} else {
		p.repeat(dst, p.elements(w, y, x0, x1), d, x1-x0)
	}
	if p.scaled {
		p.scale.applyAll(dst)
	}
}

// elements reads the part of the map that row y and columns x0 to x1 need.
func (p *operand) elements(w *worker, y, x0, x1 int) []int32 {
	if p.repeatH {
		y = 0
	}
	if p.repeatW {
		x0, x1 = 0, 1
	}
	out := w.patch[:(x1-x0)*p.d]
	w.run.read(p.fmap, out, y, x0, x1)
	return out
}

// repeat repeats elements to n pixels of d channels.
func (p *operand) repeat(dst []int64, in []int32, d, n int) {
	for x := range n {
		from := in
		if !p.repeatW {
			from = in[x*p.d:]
		}
		to := dst[x*d : (x+1)*d]
		if p.repeatC {
			fill(to, int64(from[0]))
			continue
		}
		for i, v := range from[:d] {
			to[i] = int64(v)
		}
	}
}

// leaky scales non-negative numbers by the first scale, and others by the slope.
func (e *elementwise) leaky(w *worker, y, x0, x1 int, acc []int64) {
	positive := e.first
	positive.scaled = false
	positive.load(w, acc, e.out.d, y, x0, x1)
	for i, v := range acc {
		switch {
		case v < 0:
			acc[i] = e.slope.apply(v)
		case e.first.scaled:
			acc[i] = e.first.scale.apply(v)
		}
	}
}

// combineOne applies an operation of one operand.
func combineOne(mode int, a []int64) {
	for i, v := range a {
		switch mode {
		case opAbs:
			a[i] = max(v, -v)
		case opCLZ:
			a[i] = int64(bits.LeadingZeros32(uint32(v)))
		case opNot:
			a[i] = ^v
		}
	}
}

// combine applies an operation of two operands: a = a op b.
func (e *elementwise) combine(a, b []int64) {
	b = b[:len(a)]
	switch e.mode {
	case opMul:
		for i := range a {
			a[i] *= b[i]
		}
	case opAdd:
		for i := range a {
			a[i] += b[i]
		}
	case opSub:
		for i := range a {
			a[i] -= b[i]
		}
	case opMin:
		for i := range a {
			a[i] = min(a[i], b[i])
		}
	case opMax:
		for i := range a {
			a[i] = max(a[i], b[i])
		}
	default:
		for i := range a {
			a[i] = e.rare(a[i], b[i])
		}
	}
}

// rare computes the operations without a loop of their own.
func (e *elementwise) rare(a, b int64) int64 {
	switch e.mode {
	case opSHR:
		s := scaling{mult: 1, shift: uint(min(max(b, 0), 63)), rounding: e.shift}
		return s.apply(a)
	case opSHL:
		return int64(int32(a << uint(min(max(b, 0), 32))))
	case opLSR:
		return int64(uint32(a) >> uint(min(max(b, 0), 32)))
	case opDiv:
		if b == 0 {
			return 0
		}
		return a / b
	case opAnd:
		return a & b
	case opOr:
		return a | b
	case opXor:
		return a ^ b
	case opAndNot:
		return a &^ b
	}
	return e.compare(a, b)
}

// compare returns all ones for true.
func (e *elementwise) compare(a, b int64) int64 {
	holds := false
	switch e.mode {
	case opEQ:
		holds = a == b
	case opNE:
		holds = a != b
	case opGE:
		holds = a >= b
	case opGT:
		holds = a > b
	}
	if holds {
		return -1
	}
	return 0
}
