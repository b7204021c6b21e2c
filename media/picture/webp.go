package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/webp"
)

// Steps and bytes of decoding a WebP file.
const (
	stepsWebPByte  = 400
	stepsWebPPixel = 200
	// The decoder of lossless images, and of transparency, has up to 65,536 groups of tables, whatever the size of the file, and tables of
	// 37 kB in 150 bytes of it.
	webpGroups    = 65536 * 2688
	webpTableByte = 256
)

// examineWebP reads the size of the canvas, which the frame has as well. Animations have no frame of their own.
func examineWebP(file []byte) (header, error) {
	config, err := webp.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return header{}, webpError(file, err)
	}
	h := header{format: "webp", w: config.Width, h: config.Height}
	if err := checkSize(h.w, h.h); err != nil {
		return h, err
	}
	pixels := int64(h.w+16) * int64(h.h+16)
	h.memory = 3*pixels + 2*int64(len(file)) + decoderBytes
	if bytes.Contains(file, []byte("VP8L")) || bytes.Contains(file, []byte("ALPH")) {
		h.memory += 12*pixels + webpGroups + webpTableByte*int64(len(file))
	}
	h.work = stepsWebPByte*int64(len(file)) + stepsWebPPixel*pixels
	h.why = fmt.Sprintf("%d bytes", len(file))
	return h, nil
}

func webpError(file []byte, err error) error {
	if bytes.Contains(file[:min(len(file), 64)], []byte("ANIM")) {
		return errors.New("webp: an animation, want a picture")
	}
	return fmt.Errorf("webp: %w", err)
}

// decodeWebP decodes a file to the bytes that libwebp has with its default settings.
func decodeWebP(file []byte, check func() error) (rows, error) {
	img, err := webp.Decode(&checked{check, *bytes.NewReader(file)})
	if err != nil {
		return rows{}, err
	}
	b := img.Bounds()
	switch img := img.(type) {
	case *image.NRGBA:
		return colorRows(img), nil
	case *image.YCbCr:
		return rows{b.Dx(), b.Dy(), webpRow(img)}, nil
	case *image.NYCbCrA:
		return rows{b.Dx(), b.Dy(), webpRow(&img.YCbCr)}, nil
	}
	return rows{}, fmt.Errorf("unknown color model %T", img)
}

// webpRow returns the conversion of rows, with chroma samples that are interpolated as libwebp does: 9, 3, 3 and 1 sixteenths of the nearest
// four, in two steps.
func webpRow(img *image.YCbCr) func(out []byte, y int) {
	w, h := img.Rect.Dx(), (img.Rect.Dy()+1)/2
	n := (w + 1) / 2
	blue, red := make([]byte, w+1), make([]byte, w+1)
	return func(out []byte, y int) {
		near := y / 2
		other := min(max(near+2*(y&1)-1, 0), h-1)
		main, next := near*img.CStride, other*img.CStride
		interpolate(blue[:w], img.Cb[main:main+n], img.Cb[next:next+n])
		interpolate(red[:w], img.Cr[main:main+n], img.Cr[next:next+n])
		for x, v := range img.Y[y*img.YStride : y*img.YStride+w] {
			luma, u, v := int32(v)*19077>>8, int32(blue[x]), int32(red[x])
			out[3*x] = clamp((luma + v*26149>>8 - 14234) >> 6)
			out[3*x+1] = clamp((luma - u*6419>>8 - v*13320>>8 + 8708) >> 6)
			out[3*x+2] = clamp((luma + u*33050>>8 - 17685) >> 6)
		}
	}
}

// interpolate doubles the samples of a row, between those of another one.
func interpolate(out, near, other []byte) {
	end := func(k int) byte { return byte((3*int(near[k]) + int(other[k]) + 2) >> 2) }
	out[0] = end(0)
	for x := 1; x < len(out); x += 2 {
		k := (x + 1) / 2
		if k == len(near) {
			out[x] = end(k - 1)
			break
		}
		a, b, c, d := int(near[k-1]), int(near[k]), int(other[k-1]), int(other[k])
		sum := a + b + c + d + 8
		rising, falling := (sum+2*(b+c))>>3, (sum+2*(a+d))>>3
		out[x] = byte((rising + a) >> 1)
		if x+1 < len(out) {
			out[x+1] = byte((falling + b) >> 1)
		}
	}
}
