package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // decoders that image.Decode knows
	_ "image/png"
)

// decode reads a file that was examined into 1 (gray) or 3 (red, green, blue) channels.
// Transparency is dropped, not blended, and 16-bit samples keep their upper byte. The
// context ends it at the decoder's next read, or at the next row.
func decode(ctx context.Context, file []byte, channels int) (Pixels, error) {
	img, format, err := image.Decode(&reader{ctx, bytes.NewReader(file)})
	if ctx.Err() != nil {
		return Pixels{}, context.Cause(ctx)
	}
	if err != nil {
		return Pixels{}, fmt.Errorf("picture: %s: %w", format, err)
	}
	colours, ok := img.(image.RGBA64Image)
	if !ok {
		return Pixels{}, fmt.Errorf("picture: %s: unknown colours %T", format, img)
	}
	return convert(ctx, colours, channels)
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

// convert makes rows of interleaved bytes.
func convert(ctx context.Context, img image.RGBA64Image, channels int) (Pixels, error) {
	b := img.Bounds()
	p := Pixels{b.Dy(), b.Dx(), channels, make([]byte, channels*b.Dy()*b.Dx())}
	pixel, out := pixelOf(img), p.Data
	for y := b.Min.Y; y < b.Max.Y; y++ {
		if ctx.Err() != nil {
			return Pixels{}, context.Cause(ctx)
		}
		for x := b.Min.X; x < b.Max.X; x++ {
			red, green, blue := pixel(x, y)
			if channels == 1 {
				out[0] = gray(red, green, blue)
			} else {
				out[0], out[1], out[2] = red, green, blue
			}
			out = out[channels:]
		}
	}
	return p, nil
}

// gray weighs the channels by ITU-R 601-2 in 16-bit fixed point, as Pillow does;
// a picture that is gray already comes out unchanged.
func gray(r, g, b byte) byte {
	return byte((uint32(r)*19595 + uint32(g)*38470 + uint32(b)*7471 + 1<<15) >> 16)
}

// pixelOf reads colours as color.NRGBAModel converts them.
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
		colours := make([]color.NRGBA, len(img.Palette))
		for i, c := range img.Palette {
			colours[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		return func(x, y int) (r, g, b byte) {
			c := colours[img.ColorIndexAt(x, y)]
			return c.R, c.G, c.B
		}
	}
	return func(x, y int) (r, g, b byte) {
		c := img.RGBA64At(x, y)
		return unmultiplied(c.R, c.A), unmultiplied(c.G, c.A), unmultiplied(c.B, c.A)
	}
}

// unmultiplied is the upper byte of a colour's channel before it was multiplied by alpha.
func unmultiplied(v, alpha uint16) byte {
	switch alpha {
	case 0:
		return 0
	case 0xffff:
		return byte(v >> 8)
	}
	return byte(uint32(v) * 0xffff / uint32(alpha) >> 8)
}
