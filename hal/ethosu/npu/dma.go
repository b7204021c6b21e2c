package npu

import (
	"encoding/binary"
	"math"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// dma copies rows of bytes between regions, or to the memory of look-up tables. Each side has its
// own row and plane strides. On the U85 the rows of one side can be selected by a list of indices
// (gather and scatter).
type dma struct {
	header
	length   int // bytes of a row
	rows     int
	planes   int
	src, dst dmaSide
	index    dmaIndex
}

type dmaSide struct {
	internal bool // the table memory; addresses wrap
	region   int
	base     int64
	row      int64 // bytes from row to row
	plane    int64
	indexed  bool
}

// dmaIndex is the list of row numbers: 32 bits each.
type dmaIndex struct {
	region int
	base   int64
	skip   int64 // bytes after the numbers of a plane
	max    int64 // largest number
}

const indexSize = 4

func (d *decoder) dma(*isa.Step) (operation, error) {
	r := &d.regs
	length := r.address(isa.DMA0Len)
	if length > min(1<<32, math.MaxInt) {
		return nil, isa.Malformed("DMA of %d bytes", length)
	}
	o := &dma{length: int(length), rows: 1, planes: 1}
	o.src = d.dmaSide(isa.DMA0SrcRegion, isa.DMA0Src)
	o.dst = d.dmaSide(isa.DMA0DstRegion, isa.DMA0Dst)
	srcMode, dstMode := r.bits(isa.DMA0SrcRegion, 9, 2), r.bits(isa.DMA0DstRegion, 9, 2)
	if d.u85 {
		dstMode = srcMode
	}
	mode := max(srcMode, dstMode)
	if mode > 2 {
		return nil, isa.Malformed("stride mode %d", mode)
	}
	if mode > 0 {
		o.rows = r.get(isa.DMA0Size0)
	}
	if mode > 1 {
		o.planes = r.get(isa.DMA0Size1)
	}
	if d.u85 {
		d.stridesU85(o)
	} else {
		o.src.skips(o, r, srcMode)
		o.dst.skips(o, r, dstMode)
	}
	if o.src.indexed && o.dst.indexed {
		return nil, isa.Malformed("index lists on both sides")
	}
	o.work = product64(int64(o.length)/4+elementWork, int64(o.rows)*int64(o.planes))
	if o.length == 0 || o.work == 0 {
		return nil, isa.Malformed("DMA of no bytes")
	}
	o.spans()
	return o, nil
}

func (d *decoder) dmaSide(region, base isa.Code) dmaSide {
	r := &d.regs
	return dmaSide{
		region: r.bits(region, 0, 3), internal: r.bits(region, 8, 1) == 1, base: r.address(base),
		indexed: d.u85 && r.bits(region, 11, 1) == 1,
	}
}

// skips sets the strides of the U55 and U65: a side with strides skips SKIP0 bytes after each row
// and SKIP1 after each plane, the other side none.
func (s *dmaSide) skips(o *dma, r *registers, mode int) {
	s.row = int64(o.length)
	if mode > 0 {
		s.row += r.stride(isa.DMA0Skip0)
	}
	s.plane = s.row * int64(o.rows)
	if mode > 1 {
		s.plane += r.stride(isa.DMA0Skip1)
	}
}

func (d *decoder) stridesU85(o *dma) {
	r := &d.regs
	o.src.row, o.src.plane = r.stride(isa.DMA0SrcStride0), r.stride(isa.DMA0SrcStride1)
	o.dst.row, o.dst.plane = r.stride(isa.DMA0DstStride0), r.stride(isa.DMA0DstStride1)
	o.index = dmaIndex{region: r.bits(isa.DMA0IdxRegion, 0, 3), base: r.address(isa.DMA0Idx),
		skip: r.stride(isa.DMA0IdxSkip1), max: int64(r.word(isa.DMA0IdxMax) & (1<<31 - 1))}
}

// spans records the memory that the copy can access.
func (o *dma) spans() {
	if !o.src.internal {
		o.reads("DMA source", o.side(&o.src))
	}
	if !o.dst.internal {
		o.writes("DMA destination", o.side(&o.dst))
	}
	if o.src.indexed || o.dst.indexed {
		list := dmaSide{region: o.index.region, base: o.index.base, row: indexSize,
			plane: int64(o.rows)*indexSize + o.index.skip}
		o.reads("DMA index", list.span(int64(o.rows), int64(o.planes), indexSize))
	}
}

func (o *dma) side(s *dmaSide) span {
	rows := int64(o.rows)
	if s.indexed {
		rows = o.index.max + 1
	}
	return s.span(rows, int64(o.planes), int64(o.length))
}

func (s *dmaSide) span(rows, planes, length int64) span {
	lo, hi := s.base, s.base+length
	for _, last := range [2]int64{product64(rows-1, s.row), product64(planes-1, s.plane)} {
		lo, hi = lo+min(0, last), hi+max(0, last)
	}
	return span{s.region, lo, hi}
}

// dmaRows is the number of rows between two checks of the context.
const dmaRows = 64

func (o *dma) run(r *Run, _ int) error {
	for p := range o.planes {
		for i := range o.rows {
			if i%dmaRows == 0 && r.ctx.Err() != nil {
				return nil // checked by Execute
			}
			from, to := int64(i), int64(i)
			if o.src.indexed || o.dst.indexed {
				n, err := o.number(r, p, i)
				if err != nil {
					return err
				}
				if o.src.indexed {
					from = n
				} else {
					to = n
				}
			}
			o.copy(r, o.src.base+from*o.src.row+int64(p)*o.src.plane, o.dst.base+to*o.dst.row+int64(p)*o.dst.plane)
		}
	}
	return nil
}

// number returns entry i of the list for plane p.
func (o *dma) number(r *Run, p, i int) (int64, error) {
	at := o.index.base + int64(p)*(int64(o.rows)*indexSize+o.index.skip) + int64(i)*indexSize
	n := int64(int32(binary.LittleEndian.Uint32(r.mem[o.index.region][at:])))
	if n < 0 || n > o.index.max {
		return 0, o.errorf(isa.ErrMalformed, "index %d of plane %d is %d, want at most %d", i, p, n, o.index.max)
	}
	return n, nil
}

// copy moves one row.
func (o *dma) copy(r *Run, from, to int64) {
	n := int64(o.length)
	switch {
	case o.src.internal && o.dst.internal:
		// the table memory onto itself
	case o.src.internal:
		for i := range n {
			r.mem[o.dst.region][to+i] = r.lut[(from+i)&(lutBytes-1)]
		}
	case o.dst.internal:
		for i, b := range r.mem[o.src.region][from : from+n] {
			r.lut[(to+int64(i))&(lutBytes-1)] = b
		}
	default:
		copy(r.mem[o.dst.region][to:to+n], r.mem[o.src.region][from:from+n])
	}
}
