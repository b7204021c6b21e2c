package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/exif"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestOtherFormatsEqualPillow compares GIF and WebP files with what Pillow has of them.
func TestOtherFormatsEqualPillow(t *testing.T) {
	files, err := filepath.Glob("testdata/others/*[fp]")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimPrefix(path, "testdata/")
		h, err := examine(read(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := decoded(t, name, 3); p.W != h.w || p.H != h.h {
			t.Errorf("%s: got %d×%d pixels, want %d×%d", name, p.W, p.H, h.w, h.h)
		} else {
			compare(t, p.Data, name+".bin", 0)
			measure(t, quoted(name), read(t, name), h)
		}
	}
}

// TestGIFFrame decodes frames that are smaller than the screen: the rest has the transparent color, or the first one.
func TestGIFFrame(t *testing.T) {
	colors := color.Palette{color.RGBA{255, 0, 0, 255}, color.RGBA{0, 255, 0, 255}, color.RGBA{0, 0, 255, 255}, color.RGBA{9, 8, 7, 255}}
	for transparent, want := range map[int][3]byte{-1: {255, 0, 0}, 2: {0, 0, 255}} {
		frame := image.NewPaletted(image.Rect(2, 1, 4, 3), append(color.Palette{}, colors...))
		copy(frame.Pix, []byte{1, 2, 3, 1})
		if transparent >= 0 {
			frame.Palette[transparent] = color.RGBA{}
		}
		var b bytes.Buffer
		err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{ColorModel: colors, Width: 6, Height: 5}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := decode(t.Context(), b.Bytes(), 3, exif.Upright)
		if err != nil || p.W != 6 || p.H != 5 || [3]byte(p.Data) != want || [3]byte(p.Data[3*8:]) != [3]byte{0, 255, 0} || [3]byte(p.Data[3*15:]) != [3]byte{0, 255, 0} {
			t.Errorf("transparent %d: %d×%d, %v, %v, want %v around the frame", transparent, p.W, p.H, p.Data, err, want)
		}
	}
}

// TestDamagedOthers checks that damaged GIF and WebP files, and those whose sizes are bombs, are one error each.
func TestDamagedOthers(t *testing.T) {
	want := Want{DType: tensor.Uint8, Sizes: []int{1, 3, 8, 8}, Limit: testLimit}
	canvas := func(w, h uint32) []byte { // of an extended file
		b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00"), 0, 0, 0, 0, 0, 0)
		b[24], b[25], b[26] = byte(w-1), byte((w-1)>>8), byte((w-1)>>16)
		b[27], b[28], b[29] = byte(h-1), byte((h-1)>>8), byte((h-1)>>16)
		binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
		return b
	}
	screen := append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), 0x3b)
	for _, c := range []struct {
		name string
		file []byte
		text string
	}{
		{"an empty file", nil, "unknown format"},
		{"the beginning of a GIF file", []byte("GIF89a"), "gif"},
		{"the beginning of a WebP file", []byte("RIFF\x04\x00\x00\x00WEBP"), "webp"},
		{"a GIF file of 2^32 pixels", screen, "65535×65535 pixels"},
		{"a WebP file of 2^48 pixels", canvas(1<<24, 1<<24), "webp"},
		{"a WebP file of 2^28 pixels", canvas(1<<14, 1<<14), "16384×16384 pixels"},
		{"a canvas without a frame", canvas(9, 9), "webp"},
		{"a lossless file over the limit", read(t, "others/lossless.webp"), "raise the limit"},
	} {
		got, _, err := tensorOf(t.Context(), c.file, Recipe{}, want)
		if got != nil || err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v and %v, want an error with %q", c.name, got, err, c.text)
		}
	}
	for _, name := range []string{"others/lossy_alpha.webp", "others/lossless.webp", "others/animated.gif", "others/lossy_19x21.webp"} {
		file := read(t, name)
		for n := 0; n < len(file)-1; n += 7 {
			if p, err := decode(t.Context(), file[:max(n, StartBytes)], 3, exif.Upright); err == nil && (p.W != 19 || p.H != 21) {
				t.Errorf("%s: %d bytes: %d×%d", name, n, p.W, p.H)
			}
		}
	}
}
