package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // decoders that image.Decode knows
	_ "image/png"
)

// maxPixels bounds a picture before its pixels are decoded.
const maxPixels = 1 << 26

// Decode reads a PNG or JPEG file into 1 (gray) or 3 (red, green, blue) channels.
// Transparency is dropped, not blended, and 16-bit samples keep their upper byte.
func Decode(file []byte, channels int) (Pixels, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return Pixels{}, fmt.Errorf("picture: %w", err)
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPixels/config.Height {
		return Pixels{}, fmt.Errorf("picture: %s of %d×%d pixels, at most %d in all", format, config.Width, config.Height, maxPixels)
	}
	img, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return Pixels{}, fmt.Errorf("picture: %s: %w", format, err)
	}
	if channels == 1 {
		return gray(img), nil
	}
	return rgb(img), nil
}

func rgb(img image.Image) Pixels {
	b := img.Bounds()
	p := Pixels{b.Dy(), b.Dx(), 3, make([]byte, 0, 3*b.Dy()*b.Dx())}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			p.Data = append(p.Data, c.R, c.G, c.B)
		}
	}
	return p
}

// gray weighs the channels by ITU-R 601-2 in 16-bit fixed point, as Pillow does;
// a picture that is gray already comes out unchanged.
func gray(img image.Image) Pixels {
	p := rgb(img)
	out := Pixels{p.H, p.W, 1, make([]byte, 0, p.H*p.W)}
	for px := p.Data; len(px) > 0; px = px[3:] {
		luma := (uint32(px[0])*19595 + uint32(px[1])*38470 + uint32(px[2])*7471 + 1<<15) >> 16
		out.Data = append(out.Data, byte(luma))
	}
	return out
}
