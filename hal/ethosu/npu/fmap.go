package npu

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// storage is the location of a feature map (field activation_storage; on the U55 and U65 always
// memory).
type storage uint8

const (
	inMemory storage = iota
	inChain          // in a chain buffer, written by an earlier operation
	isScalar         // one value for all elements
	nowhere          // not read or not written
)

// brick is the number of consecutive channels in the format NHCWB16.
const brick = 16

// fmap is a feature map (IFM, IFM2, OFM) of an operation. Element (y, x, c) of a map in memory is
// in one of four tiles: the left column, up to width0, is split at height0 (bases 0 and 2), the
// right one at height1 (1 and 3). Within a tile its offset is y·strideY + x·strideX + c·size in the
// format NHWC, and y·strideY + c/16·strideC + x·16·size + c%16·size in NHCWB16.
type fmap struct {
	storage storage
	region  int // or the chain buffer
	base    [4]int64
	strideY int64
	strideX int64 // of a pixel, in either format
	strideC int64 // of 16 channels, NHCWB16 only
	width0  int
	height0 int
	height1 int
	bricks  bool
	size    int // bytes of an element
	signed  bool
	zero    int32 // zero point
	scalar  int32
	h, w, d int // size accessed by the operation, in the map's axes
}

// mapRegisters are the registers of one of the three feature maps.
type mapRegisters struct {
	precision, zero, region, width0, height0, height1 isa.Code
	base, strideX, strideY, strideC                   isa.Code
	sizeLSB                                           uint // of the field activation_precision
}

var (
	ifmRegisters = mapRegisters{isa.IFMPrecision, isa.IFMZeroPoint, isa.IFMRegion, isa.IFMWidth0M1, isa.IFMHeight0M1,
		isa.IFMHeight1M1, isa.IFMBase0, isa.IFMStrideX, isa.IFMStrideY, isa.IFMStrideC, 2}
	ifm2Registers = mapRegisters{isa.IFM2Precision, isa.IFM2ZeroPoint, isa.IFM2Region, isa.IFM2Width0M1, isa.IFM2Height0M1,
		isa.IFM2Height1M1, isa.IFM2Base0, isa.IFM2StrideX, isa.IFM2StrideY, isa.IFM2StrideC, 2}
	ofmRegisters = mapRegisters{isa.OFMPrecision, isa.OFMZeroPoint, isa.OFMRegion, isa.OFMWidth0M1, isa.OFMHeight0M1,
		isa.OFMHeight1M1, isa.OFMBase0, isa.OFMStrideX, isa.OFMStrideY, isa.OFMStrideC, 1}
)

// featureMap decodes a map's registers; the caller passes its sizes.
func (r *registers) featureMap(m *mapRegisters, u85 bool, h, w, d int) (fmap, error) {
	f := fmap{region: r.bits(m.region, 0, 3), h: h, w: w, d: d}
	f.signed = r.bits(m.precision, 0, 1) == 1
	f.size = 1 << r.bits(m.precision, m.sizeLSB, 2)
	f.zero = r.signed(m.zero, f.signed)
	format := r.bits(m.precision, 6, 2)
	if format > 1 {
		return f, isa.Malformed("activation format %d", format)
	}
	f.bricks = format == 1
	for i := range f.base {
		f.base[i] = r.address(m.base + isa.Code(i))
	}
	f.strideY, f.strideX, f.strideC = r.stride(m.strideY), r.stride(m.strideX), r.stride(m.strideC)
	if f.bricks {
		f.strideX = int64(brick * f.size)
	}
	f.width0, f.height0, f.height1 = r.m1(m.width0), r.m1(m.height0), r.m1(m.height1)
	if u85 {
		switch r.bits(m.precision, 14, 2) {
		case 1:
			return f, isa.Unsupported("activation storage TILE3X1")
		case 2:
			f.storage = inChain
		case 3:
			f.storage = isScalar
			f.scalar = int32(r.word(isa.OPScalar))
		}
	}
	return f, nil
}

// row returns the address of row y in the left and the right column of tiles.
func (f *fmap) row(y int) (left, right int64) {
	if y < f.height0 {
		left = f.base[0] + int64(y)*f.strideY
	} else {
		left = f.base[2] + int64(y-f.height0)*f.strideY
	}
	if y < f.height1 {
		right = f.base[1] + int64(y)*f.strideY
	} else {
		right = f.base[3] + int64(y-f.height1)*f.strideY
	}
	return left, right
}

// column returns the column of tiles with pixel x of a row, and the pixel's offset in it.
func (f *fmap) column(x int) (right bool, offset int64) {
	if x < f.width0 {
		return false, int64(x) * f.strideX
	}
	return true, int64(x-f.width0) * f.strideX
}

// channel returns the offset of channel c within a pixel.
func (f *fmap) channel(c int) int64 {
	if f.bricks {
		return int64(c/brick)*f.strideC + int64(c%brick*f.size)
	}
	return int64(c * f.size)
}

// span is a range of bytes of a region: [lo, hi).
type span struct {
	region int
	lo, hi int64
}

func (s span) overlaps(t span) bool { return s.region == t.region && s.lo < t.hi && t.lo < s.hi }

// span returns the exact range that contains all elements of a map in memory. 40-bit numbers times
// 17-bit sizes cannot overflow.
func (f *fmap) span() span {
	s := span{region: f.region, lo: 1 << 62, hi: -1 << 62}
	left := min(f.w, f.width0)
	s.add(f, f.base[0], min(f.h, f.height0), left)
	s.add(f, f.base[2], f.h-f.height0, left)
	s.add(f, f.base[1], min(f.h, f.height1), f.w-f.width0)
	s.add(f, f.base[3], f.h-f.height1, f.w-f.width0)
	return s
}

// add extends s by a tile of h rows of w pixels.
func (s *span) add(f *fmap, base int64, h, w int) {
	if h <= 0 || w <= 0 {
		return
	}
	lo, hi := base, base
	for _, end := range [2]int64{int64(h-1) * f.strideY, int64(w-1) * f.strideX} {
		lo, hi = lo+min(0, end), hi+max(0, end)
	}
	if !f.bricks {
		hi += int64(f.d * f.size)
	} else {
		blocks := int64((f.d - 1) / brick)
		last := blocks*f.strideC + int64(((f.d-1)%brick+1)*f.size)
		full := int64(min(f.d, brick) * f.size) // the end of the first block
		if blocks > 0 {
			full = max(full, (blocks-1)*f.strideC+brick*int64(f.size))
		}
		lo += min(0, blocks*f.strideC)
		hi += max(last, full)
	}
	s.lo, s.hi = min(s.lo, lo), max(s.hi, hi)
}

// sameElements reports whether each element of f has the same address as that of g.
func (f *fmap) sameElements(g *fmap) bool {
	return f.storage == inMemory && g.storage == inMemory && f.region == g.region && f.size == g.size &&
		f.bricks == g.bricks && f.h == g.h && f.w == g.w && f.d == g.d && f.base == g.base &&
		f.strideY == g.strideY && f.strideX == g.strideX && (!f.bricks || f.strideC == g.strideC) &&
		f.width0 == g.width0 && f.height0 == g.height0 && f.height1 == g.height1
}

// product64 multiplies with saturation at 2^60.
func product64(a, b int64) int64 {
	const limit = 1 << 60
	if a == 0 || b == 0 {
		return 0
	}
	p := a * b
	if abs64(a) > limit/abs64(b) {
		p = limit
		if (a < 0) != (b < 0) {
			p = -limit
		}
	}
	return p
}

func abs64(a int64) int64 { return max(a, -a) }
