package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"github.com/etrun-go/etrun/internal/exif"
)

// rows is a decoded image that is not yet converted: row writes row y as red, green and blue bytes.
type rows struct {
	w, h int
	row  func(out []byte, y int)
}

// decode decodes an examined file into 1 (gray) or 3 (red, green, blue) channels, turned upright from orientation o.
// Transparency is dropped, not blended, and 16-bit samples keep their upper byte. Canceling
// the context stops it at the decoder's next read, or at the next row.
func decode(ctx context.Context, file []byte, channels int, o exif.Orientation) (Pixels, error) {
	f := formatOf(file)
	r, err := f.decode(file, func() error { return context.Cause(ctx) })
	if ctx.Err() != nil {
		return Pixels{}, context.Cause(ctx)
	}
	if err != nil {
		return Pixels{}, fmt.Errorf("picture: %s: %w", f.name, err)
	}
	return r.convert(ctx, channels, o)
}

// convert returns rows of interleaved bytes.
func (r rows) convert(ctx context.Context, channels int, o exif.Orientation) (Pixels, error) {
	w, h := o.Size(r.w, r.h)
	p := Pixels{h, w, channels, make([]byte, channels*h*w)}
	line := make([]byte, 3*r.w)
	for y := range r.h {
		if ctx.Err() != nil {
			return Pixels{}, context.Cause(ctx)
		}
		r.row(line, y)
		x0, y0 := o.Place(r.w, r.h, 0, y)
		x1, y1 := o.Place(r.w, r.h, 1, y)
		p.place(line, y0*w+x0, (y1-y0)*w+x1-x0)
	}
	return p, nil
}

// place stores a line of colors, whose pixels go to every step-th one from at.
func (p Pixels) place(line []byte, at, step int) {
	switch {
	case p.C == 1:
		for i := 0; i < len(line); i += 3 {
			p.Data[at] = gray(line[i], line[i+1], line[i+2])
			at += step
		}
	case step == 1:
		copy(p.Data[3*at:], line)
	default:
		for i := 0; i < len(line); i += 3 {
			copy(p.Data[3*at:3*at+3], line[i:i+3])
			at += step
		}
	}
}

// gray weighs the channels by ITU-R 601-2 in 16-bit fixed point, like Pillow; gray images
// are unchanged.
func gray(r, g, b byte) byte {
	return byte((uint32(r)*19595 + uint32(g)*38470 + uint32(b)*7471 + 1<<15) >> 16)
}

// checked checks before it reads.
type checked struct {
	check func() error
	file  bytes.Reader
}

func (c *checked) Read(p []byte) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	return c.file.Read(p)
}

func decodePNG(file []byte, check func() error) (rows, error) {
	img, err := png.Decode(&checked{check, *bytes.NewReader(file)})
	if err != nil {
		return rows{}, err
	}
	colors, ok := img.(image.RGBA64Image)
	if !ok {
		return rows{}, fmt.Errorf("unknown color model %T", img)
	}
	return colorRows(colors), nil
}

// colorRows returns the rows of an image at the origin.
func colorRows(img image.RGBA64Image) rows {
	pixel := pixelOf(img)
	return rows{img.Bounds().Dx(), img.Bounds().Dy(), func(out []byte, y int) {
		for x := range len(out) / 3 {
			out[3*x], out[3*x+1], out[3*x+2] = pixel(x, y)
		}
	}}
}

// pixelOf returns colors as color.NRGBAModel converts them.
func pixelOf(img image.RGBA64Image) func(x, y int) (r, g, b byte) {
	switch img := img.(type) {
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
