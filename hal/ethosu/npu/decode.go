package npu

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// Limits of a program. They are far beyond the networks that the hardware supports, and bound the
// time and memory of a hostile stream.
const (
	maxOperations = 1 << 17
	maxWork       = 1 << 37   // MACs, or the equivalent time
	maxWorking    = 256 << 20 // bytes of working memory, excluding the regions
)

// decoders are the commands that start work.
var decoders = map[isa.Code]func(d *decoder, s *isa.Step) (operation, error){
	isa.OpConv:        (*decoder).conv,
	isa.OpDepthwise:   (*decoder).depthwise,
	isa.OpPool:        (*decoder).pool,
	isa.OpElementwise: (*decoder).elementwise,
	isa.OpResize:      (*decoder).resize,
	isa.OpDMAStart:    (*decoder).dma,
}

// Decode decodes a stream up to its STOP. Errors are *isa.Error.
func Decode(c isa.Config, stream []byte) (*Program, error) {
	d := &decoder{config: c, u85: c.Family == isa.U85, p: &Program{Config: c}}
	var s isa.Step
	for r := isa.NewReader(c.Family, stream); !d.stopped; {
		ok, err := r.Next(&s)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, isa.StreamError(len(stream)/4, "", isa.ErrMalformed, "stream ends without NPU_OP_STOP")
		}
		if err := d.step(&s); err != nil {
			return nil, err
		}
	}
	return d.p, nil
}

// step decodes one command.
func (d *decoder) step(s *isa.Step) error {
	if !s.IsOp() {
		d.regs.set(s)
		return nil
	}
	decode := decoders[s.Code]
	switch {
	case decode != nil:
	case s.Code == isa.OpStop:
		d.stopped = true
		return nil
	case s.Code == isa.OpBranch:
		return isa.StreamError(s.Word, s.Name, isa.ErrUnsupported, "branches")
	default: // waits, interrupts and counters
		d.waits.add(s)
		return nil
	}
	op, err := decode(d, s)
	if err == nil {
		err = d.add(op, s)
	}
	if err != nil {
		return isa.Place(isa.CommandStream, s.Word, s.Name, err)
	}
	return nil
}

// add appends an operation to the program and accounts for its cost.
func (d *decoder) add(op operation, s *isa.Step) error {
	h := op.head()
	h.word, h.code, h.name, h.param, h.schedule = s.Word, s.Code, s.Name, s.Param, d.schedule()
	h.waits, d.waits = d.waits, waits{}
	o, ok := op.(*kernelOp)
	if ok {
		h.work += elementWork * o.out.elements()
	}
	if d.work += h.work; d.work > maxWork {
		return isa.Unsupported("more than %d MACs", int64(maxWork))
	}
	if len(d.p.ops) == maxOperations {
		return isa.Unsupported("more than %d operations", maxOperations)
	}
	if ok {
		if err := d.account(o); err != nil {
			return err
		}
		if m := o.asMove(); m != nil {
			op = m
		}
	}
	d.p.ops = append(d.p.ops, op)
	return nil
}

// account completes a kernel operation and computes the memory for its output and working memory.
func (d *decoder) account(o *kernelOp) error {
	if o.out.ofm.storage == inMemory && !o.out.disabled {
		o.writes("OFM", o.out.ofm.span())
	}
	if err := d.carry(o); err != nil {
		return err
	}
	o.staged = o.overlaps()
	p, n := d.p, int(o.out.elements())
	n1 := o.unit.needs()
	p.needs.max(n1)
	p.scales = max(p.scales, o.out.d)
	switch {
	case o.out.disabled:
		p.kept = max(p.kept, n)
	case o.out.ofm.storage == inChain:
		p.chains[o.out.ofm.region] = max(p.chains[o.out.ofm.region], n)
	case o.staged:
		p.staged = max(p.staged, n)
	}
	if o.dynamic {
		p.matmul = max(p.matmul, pairRows(o.out.d)*o.window.d)
	}
	if b := p.workingBytes(1); b > maxWorking {
		return isa.Unsupported("working memory of %d bytes, want at most %d", b, maxWorking)
	}
	return nil
}

// WorkingBytes returns the memory of a single-threaded run in addition to the regions.
func (p *Program) WorkingBytes() int64 { return p.workingBytes(1) }

// workingBytes returns the memory of a run with the given number of threads.
func (p *Program) workingBytes(threads int) int64 {
	n := int64(threads)*p.needs.bytes() + 8*int64(p.kept) + 8*int64(p.staged) + 40*int64(p.scales) + 32*int64(p.matmul)
	for _, c := range p.chains {
		n += 4 * int64(c)
	}
	return n
}

// carry tracks the data that operations leave for later ones: chain buffers and accumulators.
func (d *decoder) carry(o *kernelOp) error {
	if d.ifm2Accumulates() && o.acc != accIFM2 {
		return isa.Malformed("accumulators from IFM2 in an operation without IFM2")
	}
	if o.acc == accKeep {
		l := d.left
		if l == nil || l.out.h != o.out.h || l.out.w != o.out.w || l.out.d != o.out.d {
			return isa.Malformed("accumulators of %dx%dx%d that no earlier operation kept", o.out.h, o.out.w, o.out.d)
		}
	}
	d.left = nil
	if o.out.disabled {
		d.left = o
	}
	f := &o.out.ofm
	if f.storage == inChain && !o.out.disabled {
		if f.size > 4 || o.out.reverse != 0 || o.out.axes != transposes[0] {
			return isa.Unsupported("chained OFM of %d bytes per element, or transposed", f.size)
		}
		d.chained[f.region] = *f
	}
	return nil
}

// overlaps reports whether an OFM shares memory with an input other than element by element: then
// all results are computed before any is stored.
func (o *kernelOp) overlaps() bool {
	if o.out.disabled || o.out.ofm.storage != inMemory {
		return false
	}
	written := o.out.ofm.span()
	_, byElement := o.unit.(*elementwise)
	plain := byElement && o.out.axes == transposes[0] && o.out.reverse == 0
	for _, a := range o.accesses {
		if a.write || !a.overlaps(written) {
			continue
		}
		if plain && (a.what == "IFM" && o.ifm.sameElements(&o.out.ofm) || a.what == "IFM2" && o.ifm2.sameElements(&o.out.ofm)) {
			continue
		}
		return true
	}
	return false
}

// kernelOutput decodes the registers common to all kernel operations: the output stage, and the
// source and destination of accumulators.
func (d *decoder) kernelOutput() (*kernelOp, error) {
	out, err := d.output()
	if err != nil {
		return nil, err
	}
	o := &kernelOp{out: out}
	if !d.u85 {
		return o, nil
	}
	switch in := accInput(d.regs.bits(isa.AccFormat, 4, 2)); {
	case in > accIFM2:
		return nil, isa.Malformed("accumulator input %d", in)
	case in == accKeep:
		o.acc = in
	}
	o.out.disabled = d.regs.bits(isa.AccFormat, 6, 1) == 1
	return o, nil
}

// kernelOp decodes an operation with a kernel over an IFM with depth channels.
func (d *decoder) kernelOp(depth int) (*kernelOp, error) {
	o, err := d.kernelOutput()
	if err != nil {
		return nil, err
	}
	if o.window, err = d.window(o.out.h, o.out.w, depth); err != nil {
		return nil, err
	}
	h, w := o.window.mapSize()
	if err := d.inputMap(&o.ifm, &ifmRegisters, h, w, depth); err != nil {
		return nil, err
	}
	o.readsMap("IFM", &o.ifm)
	return o, nil
}

// inputMap decodes an input's registers. A chained input must match the buffer.
func (d *decoder) inputMap(f *fmap, m *mapRegisters, h, w, depth int) error {
	var err error
	if *f, err = d.regs.featureMap(m, d.u85, h, w, depth); err != nil {
		return err
	}
	if f.size > 4 && f.storage != isScalar {
		return isa.Unsupported("input of %d bytes per element", f.size)
	}
	if f.storage != inChain {
		return nil
	}
	if c := &d.chained[f.region]; c.h != h || c.w != w || c.d != depth {
		return isa.Malformed("chained input of %dx%dx%d, but buffer %d contains %dx%dx%d", h, w, depth, f.region, c.h, c.w, c.d)
	}
	return nil
}

// ifm2Accumulates reports whether accumulators start from IFM2.
func (d *decoder) ifm2Accumulates() bool {
	return d.u85 && accInput(d.regs.bits(isa.AccFormat, 4, 2)) == accIFM2
}

// accumulatorMap decodes IFM2 as the initial accumulators.
func (d *decoder) accumulatorMap(o *kernelOp) error {
	f, err := d.regs.featureMap(&ifm2Registers, d.u85, o.out.h, o.out.w, o.out.d)
	if err != nil {
		return err
	}
	if f.storage != inMemory || f.size < 4 {
		return isa.Unsupported("accumulators of %d bytes, or not in memory", f.size)
	}
	o.ifm2, o.acc = f, accIFM2
	o.reads("IFM2", f.span())
	return nil
}

// scaleEntries decodes the location of per-channel scales, if used.
func (d *decoder) scaleEntries(o *kernelOp) error {
	if d.globalScale() {
		return nil
	}
	c := d.scales()
	for i := range c.cores {
		o.reads("scales", span{c.region, c.base[i], c.base[i] + c.length[i]})
	}
	o.out.perChannel = c
	return c.check(o.out.d)
}
