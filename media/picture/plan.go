package picture

import (
	"fmt"
	"math"
)

// geometry has the sizes of a conversion: an image of w×h pixels is resized, then cropped.
type geometry struct {
	h, w           int
	toH, toW       int
	cropH, cropW   int
	padH, padW     int // with padding; 0: no padding
	pad            byte
	corner         bool
	filter         Filter
	channels, elem int
}

// plan computes the sizes and rejects those beyond the limits.
func (r Recipe) plan(pic header, f frame, want Want) (geometry, error) {
	if f.height > maxPixels || f.width > maxPixels {
		return geometry{}, fmt.Errorf("%w: resized to %d×%d", ErrShape, f.width, f.height)
	}
	whole := false
	if r.tries(f, want) {
		f.height, f.width, whole = f.attempt(pic, want.Attempt)
	}
	h, w := r.scaled(pic, f)
	if whole {
		h, w = f.height, f.width
	}
	if m := r.Multiple; m > 1 {
		h, w = max(h/m, 1)*m, max(w/m, 1)*m
	}
	if h < 1 || w < 1 || h > maxPixels/w {
		return geometry{}, fmt.Errorf("%w: resized to %d×%d", ErrShape, w, h)
	}
	if (!want.Dynamic || r.CropH > 0) && !r.Letterbox && (h < f.height || w < f.width) {
		return geometry{}, fmt.Errorf("%w: resized to %d×%d, the input is %d×%d", ErrShape, w, h, f.width, f.height)
	}
	if pic.h > maxPixels/w {
		return geometry{}, fmt.Errorf("picture: %w: %d×%d pixels resized to %d×%d, want at most %d in between", ErrLimit, pic.w, pic.h, w, h, maxPixels)
	}
	y := geometry{h: pic.h, w: pic.w, toH: h, toW: w, cropH: min(h, f.height), cropW: min(w, f.width), pad: r.Pad, corner: r.Corner, filter: r.Filter,
		channels: f.channels, elem: want.DType.Size()}
	if r.Letterbox {
		y.padH, y.padW = f.height, f.width
	}
	if need := pic.memory + y.memory(); need > want.Limit {
		return y, fmt.Errorf("picture: %w: %s of %d×%d pixels takes %d bytes to decode and %d to resize to %d×%d, the remaining limit is %d: scale it down or raise the limit",
			ErrLimit, pic.format, pic.w, pic.h, pic.memory, y.memory(), w, h, want.Limit)
	}
	return y, nil
}

// scaled returns the size before the crop. The longer side is truncated to an integer, like
// torchvision's Resize.
func (r Recipe) scaled(p header, f frame) (h, w int) {
	switch {
	case r.Height > 0:
		return r.Height, r.Width
	case r.Short > 0 && p.h <= p.w:
		return r.Short, r.Short * p.w / p.h
	case r.Short > 0:
		return r.Short * p.h / p.w, r.Short
	case r.Long > 0 && p.h >= p.w:
		return r.Long, max(r.Long*p.w/p.h, 1)
	case r.Long > 0:
		return max(r.Long*p.h/p.w, 1), r.Long
	case r.Letterbox && f.height*p.w <= f.width*p.h:
		return f.height, min(divide(f.height*p.w, p.h), f.width)
	case r.Letterbox:
		return min(divide(f.width*p.h, p.w), f.height), f.width
	case f.height*p.w >= f.width*p.h: // the height must be covered
		return f.height, max(f.height*p.w/p.h, f.width)
	}
	return max(f.width*p.h/p.w, f.height), f.width
}

// memory is the total of all allocations after the decoder, without any freed.
func (y *geometry) memory() int64 {
	const tap = 96 // bytes per output sample, and 12 per weight
	pixels := int64(y.h) * int64(y.w)
	if y.toW != y.w {
		pixels += int64(y.h) * int64(y.toW)
	}
	if y.toH != y.h {
		pixels += int64(y.toH) * int64(y.toW)
	}
	crop := max(int64(y.cropH)*int64(y.cropW), 2*int64(y.padH)*int64(y.padW))
	return int64(y.channels)*(pixels+crop*int64(1+y.elem)) +
		tap*int64(y.toH+y.toW) + int64(12*filters[y.filter].radius)*int64(4*(y.h+y.w)+6*(y.toH+y.toW))
}

// apply resizes, crops and pads.
func (y *geometry) apply(p Pixels) Pixels {
	p = p.Resize(y.toH, y.toW, y.filter).crop(y.cropH, y.cropW)
	if y.padH > 0 {
		top, left := y.margins()
		p = p.pad(y.padH, y.padW, top, left, y.pad)
	}
	return p
}

// margins returns the padding before the picture.
func (y *geometry) margins() (top, left int) {
	if y.padH == 0 || y.corner {
		return 0, 0
	}
	return (y.padH - y.cropH) / 2, (y.padW - y.cropW) / 2
}

// Place says where a point of an input is in the picture, after it was turned upright: add Left and Top, then multiply by ScaleX and ScaleY.
type Place struct {
	Left, Top      float32
	ScaleX, ScaleY float32
	W, H           int // of the picture
	InputW, InputH int
}

func (y *geometry) place() Place {
	top, left := y.margins()
	return Place{float32(cropped(y.toW, y.cropW) - left), float32(cropped(y.toH, y.cropH) - top),
		float32(y.w) / float32(y.toW), float32(y.h) / float32(y.toH), y.w, y.h, max(y.cropW, y.padW), max(y.cropH, y.padH)}
}

// cropped returns the pixels before a crop of n.
func cropped(of, n int) int { return int(math.RoundToEven(float64(of-n) / 2)) }

// String describes the conversion.
func (y *geometry) String() string {
	text := fmt.Sprintf("%d×%d pixels", y.w, y.h)
	if y.toH != y.h || y.toW != y.w {
		text += fmt.Sprintf(", resized to %d×%d", y.toW, y.toH)
		if y.filter != Bilinear {
			text += fmt.Sprintf(" (%v)", y.filter)
		}
	}
	if y.cropH != y.toH || y.cropW != y.toW {
		text += fmt.Sprintf(", center cropped to %d×%d", y.cropW, y.cropH)
	}
	if y.padH > y.cropH || y.padW > y.cropW {
		text += fmt.Sprintf(", padded to %d×%d", y.padW, y.padH)
	}
	return text
}

// cut describes what the crop loses, in pixels of the picture.
func (y *geometry) cut() string {
	columns, rows := divide((y.toW-y.cropW)*y.w, y.toW), divide((y.toH-y.cropH)*y.h, y.toH)
	switch {
	case y.cropW == y.toW && y.cropH == y.toH:
		return ""
	case y.cropH == y.toH:
		return fmt.Sprintf("%d of %d columns", columns, y.w)
	case y.cropW == y.toW:
		return fmt.Sprintf("%d of %d rows", rows, y.h)
	}
	return fmt.Sprintf("%d of %d columns and %d of %d rows", columns, y.w, rows, y.h)
}
