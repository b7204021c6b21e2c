package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // registers decoders with package image
	_ "image/png"

	"github.com/etrun-go/etrun/internal/exif"
)

// decode decodes an examined file into 1 (gray) or 3 (red, green, blue) channels, turned upright from orientation o.
// Transparency is dropped, not blended, and 16-bit samples keep their upper byte. Canceling
// the context stops it at the decoder's next read, or at the next row.
func decode(ctx context.Context, file []byte, channels int, o exif.Orientation) (Pixels, error) {
	img, format, err := image.Decode(&reader{ctx, bytes.NewReader(file)})
	if ctx.Err() != nil {
		return Pixels{}, context.Cause(ctx)
	}
	if err != nil {
		return Pixels{}, fmt.Errorf("picture: %s: %w", format, err)
	}
	colors, ok := img.(image.RGBA64Image)
	if !ok {
		return Pixels{}, fmt.Errorf("picture: %s: unknown color model %T", format, img)
	}
	return convert(ctx, colors, channels, o)
}

// reader reads until its context ends.
type reader struct {
	ctx  context.Context
	file *bytes.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.file.Read(p)
}

// convert returns rows of interleaved bytes.
func convert(ctx context.Context, img image.RGBA64Image, channels int, o exif.Orientation) (Pixels, error) {
	b := img.Bounds()
	w, h := o.Size(b.Dx(), b.Dy())
	p := Pixels{h, w, channels, make([]byte, channels*h*w)}
	pixel := pixelOf(img)
	for y := range b.Dy() {
		if ctx.Err() != nil {
			return Pixels{}, context.Cause(ctx)
		}
		x0, y0 := o.Place(b.Dx(), b.Dy(), 0, y)
		x1, y1 := o.Place(b.Dx(), b.Dy(), 1, y)
		at, step := (y0*w+x0)*channels, ((y1-y0)*w+x1-x0)*channels
		for x := range b.Dx() {
			red, green, blue := pixel(b.Min.X+x, b.Min.Y+y)
			if channels == 1 {
				p.Data[at] = gray(red, green, blue)
			} else {
				p.Data[at], p.Data[at+1], p.Data[at+2] = red, green, blue
			}
			at += step
		}
	}
	return p, nil
}

// gray weighs the channels by ITU-R 601-2 in 16-bit fixed point, like Pillow; gray images
// are unchanged.
func gray(r, g, b byte) byte {
	return byte((uint32(r)*19595 + uint32(g)*38470 + uint32(b)*7471 + 1<<15) >> 16)
}

// pixelOf returns colors as color.NRGBAModel converts them.
func pixelOf(img image.RGBA64Image) func(x, y int) (r, g, b byte) {
	switch img := img.(type) {
	case *image.YCbCr:
		return func(x, y int) (r, g, b byte) {
			at, c := img.YOffset(x, y), img.COffset(x, y)
			return color.YCbCrToRGB(img.Y[at], img.Cb[c], img.Cr[c])
		}
	case *image.NRGBA:
		return func(x, y int) (r, g, b byte) {
			c := img.NRGBAAt(x, y)
			return c.R, c.G, c.B
		}
	case *image.Paletted:
		colors := make([]color.NRGBA, len(img.Palette))
		for i, c := range img.Palette {
			colors[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		return func(x, y int) (r, g, b byte) {
			c := colors[img.ColorIndexAt(x, y)]
			return c.R, c.G, c.B
		}
	}
	return func(x, y int) (r, g, b byte) {
		c := img.RGBA64At(x, y)
		return unmultiplied(c.R, c.A), unmultiplied(c.G, c.A), unmultiplied(c.B, c.A)
	}
}

// unmultiplied returns the upper byte of a color channel without the alpha factor.
func unmultiplied(v, alpha uint16) byte {
	switch alpha {
	case 0:
		return 0
	case 0xffff:
		return byte(v >> 8)
	}
	return byte(uint32(v) * 0xffff / uint32(alpha) >> 8)
}
