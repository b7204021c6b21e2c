package npu

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// Cost is an estimate of an operation's cost on an NPU, derived from its commands.
type Cost struct {
	Word   int    // index of its command in the stream
	Name   string // "NPU_OP_CONV"
	Detail string // its fields: " pooling_mode=AVERAGE"
	MACs   int64  // MACs for the output, without multiplications for rounding
	Cycles int64  // of the MAC and output units, if memory is fast enough; 0 for DMA
	Copy   bool   // does not change values: compilers use it to convert layouts
	Read   [isa.NumRegions]int64
	Write  [isa.NumRegions]int64 // bytes

	moved [isa.NumRegions]float64 // Read and Write rounded up to whole requests
	isDMA bool
	waits waits
}

// add decodes a wait command.
func (w *waits) add(s *isa.Step) {
	switch s.Code {
	case isa.OpDMAWait:
		w.dma = int(s.Param) + 1
	case isa.OpKernelWait:
		w.kernels = int(s.Param) + 1
	}
}

// Span is the time of an operation in cycles since the start of the stream.
type Span struct{ Begin, End float64 }

// Timing describes the memory of a region. The zero value means no delay.
type Timing struct {
	Rate    float64 // bytes per cycle, reads and writes together
	Latency int     // cycles from a request to the first byte
	Burst   int     // minimum size of a request in bytes
}

// Timings are the timings of all regions.
type Timings [isa.NumRegions]Timing

// Wait returns the memory time of a cost: accesses to one memory are sequential.
func (m *Timings) Wait(c *Cost) (most float64) {
	for i := range m {
		if m[i].Rate > 0 {
			most = max(most, c.moved[i]/m[i].Rate)
		}
	}
	return most
}

// DefaultTimings returns the memory timings of Vela for an NPU. The scratch of programs with fast scratch is in slow
// memory.
func DefaultTimings(f isa.Family, fast bool) Timings {
	flash, sram := Timing{Rate: 1.875, Latency: 500, Burst: 128}, Timing{Rate: 8, Latency: 32, Burst: 32}
	if f != isa.U55 {
		flash.Rate, sram.Rate = 3.75, 16
	}
	t := Timings{flash, sram, sram, sram, sram}
	if fast {
		t[1] = t[0]
	}
	return t
}

// Timeline returns the time spans of operations. Each starts after the previous one of its kind,
// and after the operations that the stream waits for; DMA runs in parallel with the others.
func Timeline(costs []Cost, m *Timings) []Span {
	spans := make([]Span, len(costs))
	var ends [2][]float64 // of kernels and of DMA
	issued := 0.0
	for i := range costs {
		c := &costs[i]
		for kind, most := range [2]int{c.waits.kernels, c.waits.dma} {
			if done := len(ends[kind]) - most; most > 0 && done >= 0 {
				issued = max(issued, ends[kind][done])
			}
		}
		kind, took := 0, max(float64(c.Cycles), m.Wait(c))
		if c.isDMA {
			kind = 1
		}
		begin := issued
		if n := len(ends[kind]); n > 0 {
			begin = max(begin, ends[kind][n-1])
		}
		spans[i] = Span{begin, begin + took}
		ends[kind] = append(ends[kind], begin+took)
	}
	return spans
}

// microblocks give height and width by the U85's register.
var microblocks = [8][2]int{{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 4}}

// microsU65 are the micro blocks of the U55 and U65 by MACs.
var microsU65 = map[int][3]int{32: {1, 1, 4}, 64: {1, 1, 8}, 128: {1, 2, 8}, 256: {2, 2, 8}, 512: {2, 2, 8}}

// schedule decodes the registers of an operation.
func (d *decoder) schedule() schedule {
	r := &d.regs
	s := schedule{block: [3]int{r.m1(isa.OFMBlkHeightM1), r.m1(isa.OFMBlkWidthM1), r.m1(isa.OFMBlkDepthM1)},
		wide: r.bits(isa.AccFormat, 0, 2) == 1, partKernel: r.bits(isa.KernelStride, 2, 1) == 1}
	if !d.u85 {
		s.micro = microsU65[d.config.MACs]
		return s
	}
	k := r.bits(isa.AccFormat, 8, 3)
	s.micro = [3]int{max(microblocks[k][0], 1), max(microblocks[k][1], 1), 8}
	if depths := ublocksU85[d.config.MACs]; k < len(depths) && depths[k] > 0 {
		s.micro[2] = depths[k]
	}
	return s
}

// Costs estimates all operations of a program with the given memory timings.
func (p *Program) Costs(m *Timings) []Cost {
	list := make([]Cost, len(p.ops))
	for i, op := range p.ops {
		h := op.head()
		c := Cost{Word: h.word, Name: h.name, Detail: h.detail(p.Config.Family), waits: h.waits}
		switch o := op.(type) {
		case *kernelOp:
			o.cost(&c, p.Config, m)
		case *move:
			c.Copy = true
			k := kernelOp{header: o.header, ifm: o.src, out: o.out,
				window: window{kh: 1, kw: 1, strideY: 1, strideX: 1, h: o.src.h, w: o.src.w, d: o.src.d}}
			k.cost(&c, p.Config, m)
		case *dma:
			o.cost(&c, m)
		}
		list[i] = c
	}
	return list
}

// cost only counts bytes: DMA is limited by memory.
func (o *dma) cost(c *Cost, m *Timings) {
	c.isDMA = true
	n := int64(o.length) * int64(o.rows) * int64(o.planes)
	if !o.src.internal {
		c.read(m, o.src.region, n, o.length)
	}
	if !o.dst.internal {
		c.write(m, o.dst.region, n, o.length)
	}
}

// read adds n bytes read from a region in segments of run bytes.
func (c *Cost) read(m *Timings, region int, n int64, run int) {
	c.Read[region] += n
	c.move(m, region, n, run)
}

// write adds n bytes written to a region in segments of run bytes.
func (c *Cost) write(m *Timings, region int, n int64, run int) {
	c.Write[region] += n
	c.move(m, region, n, run)
}

// move adds the size of whole requests: a short segment costs a full burst.
func (c *Cost) move(m *Timings, region int, n int64, run int) {
	c.moved[region] += float64(n) * max(float64(m[region].Burst)/float64(max(run, 1)), 1)
}

func ceil(n, d int) int64 { return int64((n + d - 1) / max(d, 1)) }

// cost estimates a kernel operation block by block.
func (o *kernelOp) cost(c *Cost, config isa.Config, m *Timings) {
	t := &tally{op: o, config: config, timings: m, ofm: [3]int{o.out.h, o.out.w, o.out.d}}
	for i := range t.block {
		t.block[i] = min(o.schedule.block[i], t.ofm[i])
		t.count[i] = ceil(t.ofm[i], t.block[i])
	}
	c.MACs = t.macs()
	c.Cycles = t.cycles()
	t.traffic(c)
}

// tally is the estimate of one operation.
type tally struct {
	op     *kernelOp
	config isa.Config
	ofm    [3]int
	block  [3]int   // clipped to the OFM
	count  [3]int64 // of blocks along each axis

	timings *Timings
}

// blocks is the number of blocks of the OFM.
func (t *tally) blocks() int64 { return t.count[0] * t.count[1] * t.count[2] }

// elements is the number of elements of a block.
func (t *tally) elements() int64 { return int64(t.block[0]) * int64(t.block[1]) * int64(t.block[2]) }

// sums reports whether the operation sums over input channels.
func (t *tally) sums() bool { return t.op.code == isa.OpConv || t.mode() == poolReduceSum }

// mode is the pooling mode, -1 for other operations.
func (t *tally) mode() int {
	if t.op.code != isa.OpPool {
		return -1
	}
	return int(t.op.param & 7)
}

func (t *tally) macs() int64 {
	n := t.op.out.elements() * int64(t.op.window.kh) * int64(t.op.window.kw)
	switch {
	case t.op.code == isa.OpElementwise || t.op.code == isa.OpResize:
		return 0
	case t.sums():
		return n * int64(t.op.window.d)
	}
	return n
}

// inFlight is the number of blocks processed concurrently.
const inFlight = 4

// cycles estimates the time of the MAC and the output unit, which work in parallel on successive
// blocks.
func (t *tally) cycles() int64 {
	out := t.outputPerElement()
	if t.op.code == isa.OpElementwise {
		n := float64(t.elements())
		out = max(out, (t.blockTraffic()+out*n)/inFlight/n)
		depth := (t.ofm[2] + 15) &^ 15
		if !t.op.out.ofm.bricks {
			depth = t.ofm[2]
		}
		return int64(out*float64(t.ofm[0])*float64(t.ofm[1])*float64(depth) + .5)
	}
	macs := t.macCycles()
	output := out * float64(t.elements())
	if c := t.op.out.perChannel; c != nil { // entries of 10 bytes are read one by one
		output = max(output, 10*float64(t.block[2]*t.timings[c.region].Latency)/256)
	}
	pipeline := (t.blockTraffic() + output + macs) / inFlight
	macs, output = max(macs, pipeline), max(output, pipeline)
	return int64(max(macs, output)*float64(t.blocks()) + min(macs, output))
}

// blockTraffic returns the cycles to read a block's IFM and write its OFM, at 8 bytes per cycle.
func (t *tally) blockTraffic() float64 {
	return float64(t.latency(&t.op.ifm)+t.latency(&t.op.out.ofm)) + float64(t.inputBlock()+t.elements())/8
}

// latency returns the latency of a map's memory.
func (t *tally) latency(m *fmap) int {
	if m.storage != inMemory {
		return 0
	}
	return t.timings[m.region].Latency
}

// inputBlock returns the number of IFM elements that a step on a block needs.
func (t *tally) inputBlock() int64 {
	w := &t.op.window
	if t.op.code == isa.OpElementwise {
		return t.elements()
	}
	h := min(int64(t.block[0]-1)*int64(w.strideY)+int64(min(w.kh, 8)), int64(max(w.h, 1)))
	wd := min(int64(t.block[1]-1)*int64(w.strideX)+int64(min(w.kw, 8)), int64(max(w.w, 1)))
	return h * wd * int64(t.inputDepth())
}

// inputDepth returns the number of IFM channels that are processed at once.
func (t *tally) inputDepth() int {
	if !t.sums() {
		return t.block[2]
	}
	most := 32 / max(t.op.ifm.size, 1)
	if t.config.Family == isa.U85 {
		most *= 2
	}
	return min(most, (t.op.window.d+7)&^7)
}

// macCycles returns the cycles of the MAC unit for a block.
func (t *tally) macCycles() float64 {
	micro, block := t.op.schedule.micro, t.block
	w := &t.op.window
	if micro[0] == 2 && t.op.code != isa.OpPool && t.ofm[0] == 1 && t.ofm[1]%2 == 0 && w.kh == 1 {
		micro = [3]int{1, 4, micro[2]} // both rows do one
	}
	xy, z := ceil(block[0], micro[0])*ceil(block[1], micro[1]), ceil(block[2], micro[2])
	total := int64(0)
	for y := 0; y < w.kh; y += 8 {
		for x := 0; x < w.kw; x += 8 {
			total += t.subKernel(min(8, w.kh-y)*min(8, w.kw-x), xy, z, micro[2])
		}
	}
	if t.sums() {
		total *= ceil(t.op.window.d, t.inputDepth())
	}
	return float64(total) / float64(t.config.Cores())
}

// subKernel returns the cycles for kernel elements, at most 64 of which are processed at once: 4
// cycles per micro block and step, and the stall between sums in the same accumulator.
func (t *tally) subKernel(elements int, xy, z int64, depth int) int64 {
	weights, once := 4*int64(depth), 4*xy // cycles to load the weights
	wide := t.op.ifm.size == 2
	steps, groups := int64(elements), int64(1)
	switch {
	case t.op.code == isa.OpPool && t.mode() != poolReduceSum:
		cycles := int64(max(4, elements)) * xy * z
		if wide && t.config.MACs > 32 {
			cycles *= 2
		}
		return cycles + t.wait(1, xy, z)
	case t.op.code == isa.OpDepthwise:
		if steps = ceil(elements, 4); wide {
			once *= 2
		}
	case t.op.code == isa.OpConv && t.op.schedule.partKernel:
		together := 4
		if wide {
			together = 2
		}
		steps, groups = ceil(elements, together), ceil(t.inputDepth(), 8)
	}
	return (max(weights, once)*steps*z + t.wait(steps, xy, z)) * groups
}

// wait returns the stall between sums in the same accumulator, if a block is so small that there is
// no other work.
func (t *tally) wait(steps, xy, z int64) int64 {
	delay := int64(2)
	switch {
	case t.config.MACs == 32 && t.op.schedule.wide:
		delay = 7
	case t.config.MACs == 32, t.op.schedule.wide && t.config.MACs <= 128:
		delay = 3
	}
	switch {
	case xy > 1:
		return 0
	case z == 1:
		return delay * steps
	}
	return delay * (steps - 1) * z
}

// outputPerElement returns the cycles of the output unit per element. It has one lane per 32 MACs.
func (t *tally) outputPerElement() float64 {
	lanes := float64(t.config.MACs) / 32
	cycles := 2.0
	mode := int(t.op.param & 63)
	switch elementwise := t.op.code == isa.OpElementwise; {
	case elementwise && t.op.ifm.size == 4:
		cycles = 3
	case elementwise && mode == opMul, !elementwise && t.op.schedule.wide:
		cycles = 3
	case elementwise && (mode == opAdd || mode == opSub):
		cycles = 6
	case t.mode() == poolMax:
		cycles = 1
	}
	cycles /= lanes
	switch {
	case t.op.out.table.kind != noTable:
		return max(cycles, 1/float64(t.config.Cores()))
	case t.op.out.clamp:
		return max(cycles, min(2/lanes, 1))
	}
	return cycles
}

// traffic adds the memory traffic. The IFM is read again for every block that needs it, weights for
// every block of a plane.
func (t *tally) traffic(c *Cost) {
	o, m := t.op, t.timings
	if o.ifm.storage == inMemory && o.ifm.h > 0 {
		depth := int64(1)
		if t.sums() {
			depth = ceil(o.window.d, t.inputDepth())
		}
		c.read(m, o.ifm.region, t.inputBlock()*depth*t.blocks()*int64(o.ifm.size), t.readRun(&o.ifm))
	}
	if f := &o.ifm2; f.storage == inMemory && f.h > 0 {
		c.read(m, f.region, int64(f.h)*int64(f.w)*int64(f.d)*int64(f.size), t.readRun(f))
	}
	if o.stored != nil {
		for _, s := range o.stored.streams {
			c.read(m, s.region, (s.hi-s.lo)*t.count[0]*t.count[1], int(s.hi-s.lo))
		}
	}
	if p := o.out.perChannel; p != nil {
		c.read(m, p.region, 10*int64(t.ofm[2]), 10*t.ofm[2])
	}
	if f := &o.out.ofm; f.storage == inMemory && !o.out.disabled {
		c.write(m, f.region, o.out.elements()*int64(f.size), t.writeRun(f))
	}
}

// readRun returns the number of consecutive bytes of a read request.
func (t *tally) readRun(f *fmap) int {
	if f.bricks {
		return brick * f.size * t.block[1]
	}
	if t.inputDepth() < f.d {
		return f.size * t.inputDepth()
	}
	return f.size * max(f.d, 1) * t.block[1] // adjacent pixels
}

// writeRun is readRun for writes, which have 16 channels per core.
func (t *tally) writeRun(f *fmap) int {
	if f.bricks {
		return brick * f.size * t.block[1] * t.config.Cores()
	}
	if f.d <= min(t.block[2], brick) {
		return f.size * f.d * t.block[1]
	}
	return min(64, brick*f.size*t.config.Cores(), t.block[2]*f.size)
}
