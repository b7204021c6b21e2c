package picture

import (
	"context"
	"fmt"
	"image"
	"math"

	"github.com/etrun-go/etrun/internal/exif"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Input is a converted image.
type Input struct {
	*tensor.Tensor
	Applied string // the conversion
	Cut     string // what of the image was cut off without a request, empty for nothing
	Place   Place  // of the input in the image
	Next    int    // the next attempt with another size, if the program does not accept this one; -1 for none
}

// Tensor decodes a PNG or JPEG file and converts it by the recipe to a contiguous tensor for
// the input. The pixels are first turned upright by the file's EXIF orientation, unless the recipe
// keeps them as stored. Everything that depends on the image's size
// is checked against the limits before decoding. Tensor returns when the context ends; the
// decoder stops at its next read.
func Tensor(ctx context.Context, file []byte, r Recipe, want Want) (Input, error) {
	done := make(chan struct{})
	var made Input
	var fault error
	go func() {
		defer close(done)
		made, fault = r.tensor(ctx, file, want)
	}()
	select {
	case <-done:
		return made, fault
	case <-ctx.Done():
		return Input{}, context.Cause(ctx)
	}
}

// Image decodes an image, upright unless it is wanted as stored. limit bounds the bytes of the decoder and the pixels.
func Image(ctx context.Context, file []byte, stored bool, limit int64) (*image.NRGBA, error) {
	h, err := examine(file)
	if err != nil {
		return nil, err
	}
	const pixel = 4
	if need := h.memory + pixel*int64(h.w)*int64(h.h); need > limit {
		return nil, fmt.Errorf("picture: %w: %s of %d×%d pixels takes %d bytes, the remaining limit is %d", ErrLimit, h.format, h.w, h.h, need, limit)
	}
	o := exif.Upright
	if !stored {
		o = exif.Of(file)
	}
	p, err := decode(ctx, file, 3, o)
	if err != nil {
		return nil, err
	}
	m := image.NewNRGBA(image.Rect(0, 0, p.W, p.H))
	for i := range p.W * p.H {
		copy(m.Pix[pixel*i:], append(p.Data[3*i:3*i+3:3*i+3], 255))
	}
	return m, nil
}

func (r Recipe) tensor(ctx context.Context, file []byte, want Want) (in Input, err error) {
	f, err := frameOf(want, r.Layout)
	if err != nil {
		return in, err
	}
	if err := r.crop(&f, want); err != nil {
		return in, err
	}
	if err := checkChannels(r, f.channels); err != nil {
		return in, err
	}
	h, err := examine(file)
	if err != nil {
		return in, err
	}
	o := exif.Upright
	if !r.Stored {
		o = exif.Of(file)
	}
	h.w, h.h = o.Size(h.w, h.h)
	way, err := r.plan(h, f, want)
	if err != nil {
		return in, err
	}
	p, err := decode(ctx, file, f.channels, o)
	if err != nil {
		return in, err
	}
	if p.H != h.h || p.W != h.w {
		return in, fmt.Errorf("picture: %s has %d×%d pixels, declared %d×%d", h.format, p.W, p.H, h.w, h.h)
	}
	p = way.apply(p)
	if ctx.Err() != nil {
		return in, context.Cause(ctx)
	}
	in.Tensor = tensor.Make(want.DType, f.sizes(p, want), nil, tensor.Static)
	in.Bind(tensor.AlignedBytes(in.NBytes()))
	scaled, err := r.store(in.Tensor, p, f)
	if err != nil {
		return Input{}, err
	}
	in.Applied = way.String() + turned(o) + scaled + ", layout " + string(f.layout)
	if !r.sized() || want.Dynamic && r.CropH == 0 {
		in.Cut = way.cut()
	}
	in.Next, in.Place = r.next(h, f, want), way.place()
	return in, nil
}

// turned describes an orientation that was applied.
func turned(o exif.Orientation) string {
	if o == exif.Upright {
		return ""
	}
	return fmt.Sprintf(", turned upright before (EXIF orientation %d; orientation=stored keeps it)", o)
}

// frameOf finds the channel dimension: size 1 or 3, before or after the sides; if both are
// possible, before, like PyTorch.
func frameOf(want Want, layout Layout) (frame, error) {
	s := want.Sizes
	refuse := func() (frame, error) {
		return frame{}, fmt.Errorf("%w: input of sizes %v with layout %q is not an image of 1 or 3 channels", ErrShape, s, layout)
	}
	if layout == "" {
		layout = Auto
	}
	if len(s) == 2 && layout == Auto {
		return frame{n: -1, c: -1, h: 0, w: 1, channels: 1, layout: "hw", height: s[0], width: s[1]}, nil
	}
	if len(s) != 3 && len(s) != 4 {
		return refuse()
	}
	b := len(s) - 3 // 1 if there is a batch
	isChannels := func(d int) bool { return s[d] == 1 || s[d] == 3 }
	f := frame{n: b - 1}
	switch {
	case layout != NHWC && isChannels(b):
		f.c, f.h, f.w, f.layout = b, b+1, b+2, NCHW
	case layout != NCHW && isChannels(b+2):
		f.c, f.h, f.w, f.layout = b+2, b, b+1, NHWC
	default:
		return refuse()
	}
	if f.n >= 0 && s[f.n] != 1 && !want.Dynamic {
		return frame{}, fmt.Errorf("%w: a batch of %d, want 1", ErrShape, s[f.n])
	}
	f.channels, f.height, f.width = s[f.c], s[f.h], s[f.w]
	return f, nil
}

// crop makes an explicit crop the size of a dynamic input.
func (r Recipe) crop(f *frame, want Want) error {
	if r.CropH == 0 {
		return nil
	}
	if fits := r.CropH <= f.height && r.CropW <= f.width; !fits || !want.Dynamic && (r.CropH != f.height || r.CropW != f.width) {
		return fmt.Errorf("%w: cropped to %d×%d, the input is %d×%d", ErrShape, r.CropW, r.CropH, f.width, f.height)
	}
	f.height, f.width = r.CropH, r.CropW
	return nil
}

func (f frame) sizes(p Pixels, want Want) []int {
	s := make([]int, len(want.Sizes))
	for d, v := range map[int]int{f.n: 1, f.c: p.C, f.h: p.H, f.w: p.W} {
		if d >= 0 {
			s[d] = v
		}
	}
	return s
}

func checkChannels(r Recipe, channels int) error {
	for _, list := range [][]float32{r.Mean, r.Std} {
		if len(list) > 1 && len(list) != channels {
			return fmt.Errorf("%w: %d values of mean or std for %d channels", ErrShape, len(list), channels)
		}
	}
	return nil
}

// store writes the pixels in the input's type: floats scaled and normalized, uint8 unchanged, int8 shifted by -128 (the usual zero point
// of quantized images).
func (r Recipe) store(t *tensor.Tensor, p Pixels, f frame) (string, error) {
	var level func(v byte, c int) float32
	applied := ""
	switch {
	case t.DType.IsFloat():
		level = func(v byte, c int) float32 { return (r.scale(v) - at(r.Mean, c, 0)) / at(r.Std, c, 1) }
		to := "0…1"
		if r.Scale != 0 {
			to = fmt.Sprintf("0…%.4g", 255*r.Scale)
		}
		applied = fmt.Sprintf(", scaled to %s, mean %v, std %v", to, orElse(r.Mean, 0), orElse(r.Std, 1))
	case r.Mean != nil || r.Std != nil || r.Scale != 0:
		return "", fmt.Errorf("%w: mean, std or a scale for an input of %v", ErrShape, t.DType)
	case t.DType == tensor.Int8:
		level, applied = func(v byte, _ int) float32 { return float32(v) - 128 }, ", shifted by -128"
	case t.DType == tensor.Uint8:
		level, applied = func(v byte, _ int) float32 { return float32(v) }, ", 0…255"
	default:
		return "", fmt.Errorf("%w: input of %v, want floats, uint8 or int8 for an image", ErrShape, t.DType)
	}
	if r.BGR && p.C == 3 {
		applied += ", blue, green, red"
	}
	r.scatter(t, p, f, level)
	return applied, nil
}

// scale scales a sample. A factor that a file writes in decimals is 1/255.
func (r Recipe) scale(v byte) float32 {
	if r.Scale == 0 || math.Abs(255*r.Scale-1) < 1e-9 {
		return float32(v) / 255
	}
	return float32(float64(v) * r.Scale)
}

// scatter writes each pixel to its offset in memory.
func (r Recipe) scatter(t *tensor.Tensor, p Pixels, f frame, level func(byte, int) float32) {
	elem, levels := t.DType.Size(), make([]byte, 256*8)
	for c := range p.C { // one channel after the other: there are only 256 levels
		for v := range 256 {
			tensor.Put(levels[v*elem:], t.DType, level(byte(v), c))
		}
		from := c
		if r.BGR && p.C == 3 {
			from = 2 - c
		}
		base := 0
		if f.c >= 0 {
			base = c * t.Strides[f.c]
		}
		for i, at := 0, from; at < len(p.Data); i, at = i+1, at+p.C {
			offset := base + i/p.W*t.Strides[f.h] + i%p.W*t.Strides[f.w]
			copy(t.Data[offset*elem:(offset+1)*elem], levels[int(p.Data[at])*elem:])
		}
	}
}

func at(list []float32, c int, otherwise float32) float32 {
	switch len(list) {
	case 0:
		return otherwise
	case 1:
		return list[0]
	}
	return list[c]
}

func orElse(list []float32, otherwise float32) []float32 {
	if list == nil {
		return []float32{otherwise}
	}
	return list
}
