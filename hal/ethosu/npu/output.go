package npu

import (
	"encoding/binary"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// output is the output stage: bias, scale, zero point, clamp, table, and store, in this order.
type output struct {
	ofm        fmap // sizes in the map's own axes, after transposition
	h, w, d    int  // sizes before transposition
	axes       [3]int
	reverse    int // 1, 2, 3 for H, W, C; 0 for none
	perChannel *channelScales
	scaled     bool
	scale      scaling
	clamp      bool
	min, max   int64
	table      lookup
	low, high  int64 // range of the OFM's type
	first      int64 // range before the table: the clamp, and the type's if there is no table
	last       int64
	disabled   bool // accumulators are kept, nothing is stored
}

// channelScales is the location of the bias and scale of each output channel: entries of 10 bytes,
// in one stream per core; cores alternate between channels.
type channelScales struct {
	region int
	base   [2]int64
	length [2]int64
	cores  int
	u85    bool
	acc48  bool // entries of the U85's wide accumulators
}

const scaleEntry = 10

// transposes contains, for each code of activation_transpose, the source axes (0 H, 1 W, 2 C) of
// the result's H, W and C.
var transposes = [8][3]int{0: {0, 1, 2}, 1: {1, 0, 2}, 2: {0, 2, 1}, 3: {1, 2, 0}, 6: {2, 0, 1}, 7: {2, 1, 0}}

// output decodes the registers of the output stage.
func (d *decoder) output() (output, error) {
	r := &d.regs
	o := output{h: r.m1(isa.OFMHeightM1), w: r.m1(isa.OFMWidthM1), d: r.m1(isa.OFMDepthM1), axes: transposes[0]}
	if d.u85 {
		code := r.bits(isa.OFMPrecision, 11, 3)
		if code == 4 || code == 5 {
			return o, isa.Malformed("activation transpose %d", code)
		}
		o.axes, o.reverse = transposes[code], r.bits(isa.OFMPrecision, 9, 2)
	}
	dims := [3]int{o.h, o.w, o.d}
	var err error
	o.ofm, err = r.featureMap(&ofmRegisters, d.u85, dims[o.axes[0]], dims[o.axes[1]], dims[o.axes[2]])
	if err != nil {
		return o, err
	}
	if o.ofm.storage == isScalar {
		o.ofm.storage = nowhere
	}
	o.low, o.high = typeRange(o.ofm.size, o.ofm.signed)
	if err := d.activation(&o); err != nil {
		return o, err
	}
	o.limit()
	d.outputScale(&o)
	return o, nil
}

// limit combines the clamp with the range of the type.
func (o *output) limit() {
	o.first, o.last = o.low, o.high
	if o.clamp {
		o.first, o.last = o.min, o.max
	}
	if o.table.kind == noTable {
		o.first, o.last = min(max(o.first, o.low), o.high), min(max(o.last, o.low), o.high)
	}
}

// outputScale decodes the scale of all channels (OFM_SCALE).
func (d *decoder) outputScale(o *output) {
	r := &d.regs
	o.scaled = true
	o.scale = scaling{mult: int64(r.word(isa.OFMScale)), shift: uint(r.high(isa.OFMScale, 0, 6))}
	if d.u85 {
		o.scale.mult &= 1<<31 - 1
		o.scale.rounding = roundingsU85[r.high(isa.OFMScale, 13, 3)]
		return
	}
	o.scale.rounding = roundingsU65[r.bits(isa.OFMPrecision, 14, 2)]
}

// globalScale reports whether OFM_SCALE applies to all channels; else each has its own entry.
func (d *decoder) globalScale() bool { return d.regs.bits(isa.OFMPrecision, 8, 1) == 1 }

// scales decodes the location of the channels' scales.
func (d *decoder) scales() *channelScales {
	r := &d.regs
	c := &channelScales{region: r.bits(isa.ScaleRegion, 0, 3), cores: 1, u85: d.u85}
	c.base[0], c.length[0] = r.address(isa.ScaleBase), int64(r.word(isa.ScaleLength)&(1<<20-1))
	if d.u85 {
		c.acc48 = r.bits(isa.AccFormat, 0, 2) == 1
	} else if d.cores() == 2 {
		c.cores = 2
		c.base[1], c.length[1] = r.address(isa.Scale1Base), int64(r.word(isa.Scale1Length)&(1<<20-1))
	}
	return c
}

// check returns an error if there are fewer than n entries.
func (c *channelScales) check(n int) error {
	for i := range c.cores {
		need := int64((n+c.cores-1-i)/c.cores) * scaleEntry
		if c.length[i] < need {
			return isa.Malformed("scales of %d bytes for %d channels, want at least %d", c.length[i], n, need)
		}
	}
	return nil
}

// scaleTable is the bias and scale of each channel of an operation.
type scaleTable struct {
	channels []channelScale
	plain    bool // all have natural rounding and shifts of 1 to 62
}

type channelScale struct {
	bias, half int64
	scale      scaling
}

// load reads the entries of n channels.
func (c *channelScales) load(t *scaleTable, mem []byte, n int, r rounding) {
	t.channels, t.plain = t.channels[:n], r == natural
	for i := range t.channels {
		at := c.base[i%c.cores] + int64(i/c.cores)*scaleEntry
		e, s := mem[at:at+scaleEntry], &t.channels[i]
		low := int64(binary.LittleEndian.Uint64(e))
		s.scale = scaling{shift: uint(e[8] & 63), rounding: r}
		switch {
		case c.acc48:
			s.bias, s.scale.mult = low<<16>>16, int64(binary.LittleEndian.Uint16(e[6:])&0x7fff)
		case c.u85:
			s.bias, s.scale.mult = int64(int32(low)), int64(binary.LittleEndian.Uint32(e[4:])&0x7fffffff)
		default:
			s.bias = low << 24 >> 24
			s.scale.mult, s.scale.shift = int64(binary.LittleEndian.Uint32(e[5:])), uint(e[9]&63)
		}
		s.half = 1 << s.scale.shift >> 1
		t.plain = t.plain && s.scale.shift-1 < 62
	}
}

// apply scales pixels of all channels.
func (t *scaleTable) apply(acc []int64) {
	n := len(t.channels)
	for len(acc) >= n {
		pixel := acc[:n]
		for c := range t.channels {
			s := &t.channels[c]
			x := pixel[c] + s.bias
			if t.plain && fits(x) {
				pixel[c] = (x*s.scale.mult + s.half) >> (s.scale.shift & 63)
			} else {
				pixel[c] = s.scale.wide(x)
			}
		}
		acc = acc[n:]
	}
}

// finish converts the accumulators of whole pixels to values of the OFM.
func (o *output) finish(r *Run, acc []int64) {
	switch {
	case o.perChannel != nil:
		r.scales.apply(acc)
	case o.scaled:
		o.scale.applyAll(acc)
	}
	zero, low, high := int64(o.ofm.zero), o.first, o.last
	for i, v := range acc {
		acc[i] = min(max(v+zero, low), high)
	}
	if o.table.kind == noTable {
		return
	}
	o.table.apply(&r.lutValues, acc)
	for i, v := range acc {
		acc[i] = min(max(v, o.low), o.high)
	}
}
