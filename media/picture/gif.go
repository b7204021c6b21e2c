package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
)

// Steps of decoding a GIF file.
const (
	stepsGIFByte  = 40
	stepsGIFPixel = 24
)

// examineGIF reads the size of the screen, which no frame exceeds.
func examineGIF(file []byte) (header, error) {
	config, err := gif.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return header{}, err
	}
	h := header{format: "gif", w: config.Width, h: config.Height}
	if err := checkSize(h.w, h.h); err != nil {
		return h, err
	}
	pixels := int64(h.w) * int64(h.h)
	h.memory = 3*pixels + decoderBytes
	h.work = stepsGIFByte*int64(len(file)) + stepsGIFPixel*pixels
	h.why = fmt.Sprintf("%d bytes", len(file))
	return h, nil
}

// opaque returns a file whose first frame has no transparent color, which would lose its red, green and blue, and the index of that color, 0
// for none.
func opaque(file []byte) (same []byte, transparent int) {
	const tables, introducer, control = 10, 0x21, 0xf9
	at := 13
	if len(file) > at && file[tables]&0x80 != 0 {
		at += 3 << (file[tables]&7 + 1)
	}
	for at+4 < len(file) && file[at] == introducer {
		if file[at+1] == control && at+6 < len(file) && file[at+3]&1 != 0 {
			file, transparent = bytes.Clone(file), int(file[at+6])
			file[at+3] &^= 1
		}
		for at += 2; at < len(file) && file[at] != 0; {
			at += 1 + int(file[at])
		}
		at++
	}
	return file, transparent
}

// decodeGIF decodes the first frame. What of the screen it does not cover has the transparent color, or the first one, as Pillow has it.
func decodeGIF(file []byte, check func() error) (rows, error) {
	file, transparent := opaque(file)
	img, err := gif.Decode(&checked{check, *bytes.NewReader(file)})
	if err != nil {
		return rows{}, err
	}
	config, err := gif.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return rows{}, err
	}
	frame, ok := img.(*image.Paletted)
	if !ok {
		return rows{}, fmt.Errorf("unknown color model %T", img)
	}
	screen := image.Rect(0, 0, config.Width, config.Height)
	if frame.Rect == screen {
		return colorRows(frame), nil
	}
	all := image.NewPaletted(screen, frame.Palette)
	for i := range all.Pix {
		all.Pix[i] = byte(min(transparent, len(frame.Palette)-1))
	}
	for y := frame.Rect.Min.Y; y < frame.Rect.Max.Y; y++ {
		copy(all.Pix[all.PixOffset(frame.Rect.Min.X, y):], frame.Pix[frame.PixOffset(frame.Rect.Min.X, y):][:frame.Rect.Dx()])
	}
	return colorRows(all), nil
}
