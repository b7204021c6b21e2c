package npu

import (
	"encoding/binary"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// lutBytes is the size of the memory of look-up tables, lutSlot the unit of the U55's
// and U65's table numbers.
const (
	lutBytes = 2048
	lutSlot  = 256
)

// tableKind is the kind of a table's input and output.
type tableKind uint8

const (
	noTable   tableKind = iota
	from8               // 256 values, indexed by an 8-bit number
	from16              // 512 pairs of base and slope
	from16x32           // the same, for a result of 32 bits
)

// lookup is an operation's table.
type lookup struct {
	kind   tableKind
	at     int   // first byte in the table memory
	offset int64 // added to a value to get its index
	size   int   // bytes per entry, from8
	signed bool  // entries are signed, from8
}

// lutValues are the entries of the table in use.
type lutValues struct {
	values [256]int64
	base   [512]int64
	slope  [512]int64
}

// activation decodes the clamp and the table.
func (d *decoder) activation(o *output) error {
	if d.u85 {
		return d.activationU85(o)
	}
	return d.activationU65(o)
}

// Values of activation_clip_range on the U55 and U65.
const (
	clipOFM    = 0
	clipUint8  = 2
	clipInt8   = 3
	clipInt16  = 5
	firstTable = 16 // activation_function TABLE_0
)

func (d *decoder) activationU65(o *output) error {
	r := &d.regs
	size, signed := o.ofm.size, o.ofm.signed
	forced := true
	switch clip := r.bits(isa.Activation, 12, 3); clip {
	case clipOFM:
		forced = false
	case clipUint8:
		size, signed = 1, false
	case clipInt8:
		size, signed = 1, true
	case clipInt16:
		size, signed = 2, true
	default:
		return isa.Malformed("clip range %d", clip)
	}
	o.clamp = o.ofm.size < 4 || forced
	o.min, o.max = int64(r.signed(isa.ActivationMin, signed)), int64(r.signed(isa.ActivationMax, signed))
	switch f := r.bits(isa.Activation, 0, 5); {
	case f == 0:
	case f < firstTable:
		return isa.Unsupported("built-in activation function %d", f)
	case f < firstTable+8 && size == 1:
		o.table = lookup{kind: from8, at: (f - firstTable) * lutSlot, size: o.ofm.size, signed: o.ofm.signed}
		if signed {
			o.table.offset = 128
		}
	case f < firstTable+8 && size == 2:
		o.table = lookup{kind: from16, at: (f - firstTable) * lutSlot}
	default:
		return isa.Malformed("activation function %d of %d-byte values", f, size)
	}
	return nil
}

// tablesU85 are the values of activation_function that use a table.
var tablesU85 = [16]lookup{
	1: {kind: from8, size: 1},
	4: {kind: from8, size: 1, offset: 128, signed: true},
	5: {kind: from8, size: 2, offset: 128, signed: true},
	7: {kind: from8, size: 4, offset: 128, signed: true},
	8: {kind: from16},
	9: {kind: from16x32},
}

func (d *decoder) activationU85(o *output) error {
	r := &d.regs
	signed := o.ofm.signed
	o.clamp = r.bits(isa.Activation, 12, 1) == 0
	f, n := r.bits(isa.Activation, 0, 5), r.bits(isa.Activation, 5, 3)
	if f != 0 {
		if f >= len(tablesU85) || tablesU85[f].kind == noTable {
			return isa.Unsupported("activation function %d", f)
		}
		o.table = tablesU85[f]
		o.table.at = n * o.table.bytes()
		signed = f != 1
	}
	o.min, o.max = int64(r.signed(isa.ActivationMin, signed)), int64(r.signed(isa.ActivationMax, signed))
	return nil
}

// bytes returns the size of the table.
func (l *lookup) bytes() int {
	if l.kind == from8 {
		return 256 * l.size
	}
	return lutBytes
}

// load reads the table's entries; addresses wrap at the end of the table memory.
func (l *lookup) load(v *lutValues, lut *[lutBytes]byte) {
	var b [8]byte
	entry := func(at, size int) []byte {
		for i := range size {
			b[i] = lut[(l.at+at+i)%lutBytes]
		}
		return b[:]
	}
	if l.kind != from8 {
		for i := range v.base {
			e := entry(4*i, 4)
			v.base[i] = int64(int16(binary.LittleEndian.Uint16(e)))
			v.slope[i] = int64(int16(binary.LittleEndian.Uint16(e[2:])))
		}
		return
	}
	for i := range v.values {
		u := int64(binary.LittleEndian.Uint64(entry(i*l.size, l.size))) & (1<<(8*l.size) - 1)
		if l.signed {
			u = u << (64 - 8*l.size) >> (64 - 8*l.size)
		}
		v.values[i] = u
	}
}

// apply looks up values. Values outside the index range are clamped.
func (l *lookup) apply(v *lutValues, acc []int64) {
	switch l.kind {
	case from8:
		for i, x := range acc {
			acc[i] = v.values[min(max(x+l.offset, 0), 255)]
		}
	case from16:
		for i, x := range acc {
			n, f := split16(x)
			acc[i] = v.base[n] + (v.slope[n]*f+64)>>7
		}
	case from16x32:
		for i, x := range acc {
			n, f := split16(x)
			acc[i] = v.base[n]<<7 + v.slope[n]*f
		}
	}
}

// split16 returns the entry of a 16-bit number, and its position between this entry and the next.
func split16(x int64) (n, fraction int64) {
	x = min(max(x, -1<<15), 1<<15-1)
	return x>>7 + 256, x & 127
}
