package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/exif"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// exifTags returns EXIF metadata with the orientation.
func exifTags(order binary.AppendByteOrder, o exif.Orientation) []byte {
	b := []byte("II")
	if order.String() == binary.BigEndian.String() {
		b = []byte("MM")
	}
	b = order.AppendUint32(order.AppendUint16(b, 42), 8)
	b = order.AppendUint16(order.AppendUint16(order.AppendUint16(b, 1), 0x0112), 3)
	b = order.AppendUint16(order.AppendUint32(b, 1), uint16(o))
	return append(b, 0, 0, 0, 0, 0, 0)
}

// withTags inserts metadata behind the start of a JPEG or PNG file.
func withTags(file, tags []byte) []byte {
	if bytes.HasPrefix(file, []byte(pngMagic)) {
		const header = 33 // magic and IHDR
		chunk := append([]byte("eXIf"), tags...)
		chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk))
		return slices.Concat(file[:header], binary.BigEndian.AppendUint32(nil, uint32(len(tags))), chunk, file[header:])
	}
	tags = append([]byte("Exif\x00\x00"), tags...)
	return slices.Concat(file[:2], []byte{0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(tags)+2)), tags, file[2:])
}

// blocks are the gray levels of six blocks of 16×16 pixels, which JPEG stores almost without loss, and shrunk what
// a resize to 3×2 pixels with its antialiasing makes of them.
var (
	blocks = []uint8{0, 50, 100, 150, 200, 250}
	shrunk = []uint8{28, 71, 114, 136, 179, 222}
)

// stored returns the blocks, three wide, stored so that orientation o shows them upright.
func stored(o exif.Orientation) image.Image {
	const side, w, h = 16, 48, 32
	storedW, storedH := o.Size(w, h) // an orientation that turns, turns back
	img := image.NewGray(image.Rect(0, 0, storedW, storedH))
	for y := range storedH {
		for x := range storedW {
			toX, toY := o.Place(storedW, storedH, x, y)
			img.SetGray(x, y, color.Gray{Y: blocks[toY/side*3+toX/side]})
		}
	}
	return img
}

func TestOrientation(t *testing.T) {
	for o := exif.Orientation(1); o <= 8; o++ {
		var asPNG, asJPEG bytes.Buffer
		if err := png.Encode(&asPNG, stored(o)); err != nil {
			t.Fatal(err)
		}
		if err := jpeg.Encode(&asJPEG, stored(o), &jpeg.Options{Quality: 95}); err != nil {
			t.Fatal(err)
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, file := range [][]byte{asPNG.Bytes(), asJPEG.Bytes()} {
				checkBlocks(t, fmt.Sprint(o, " ", order), withTags(file, exifTags(order, o)), o)
			}
		}
	}
}

// checkBlocks converts a file of blocks: resized and cropped, in gray and in color.
func checkBlocks(t *testing.T, name string, file []byte, o exif.Orientation) {
	t.Helper()
	for _, channels := range []int{1, 3} {
		got, applied, err := tensorOf(t.Context(), file, Recipe{Height: 2, Width: 3}, Want{DType: tensor.Uint8, Sizes: []int{1, 2, 3, channels},
			Limit: testLimit})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, v := range got.Data {
			if d := int(v) - int(shrunk[i/channels]); d > 3 || d < -3 {
				t.Fatalf("%s: got %v, want %v for each of %d channels", name, got.Data, shrunk, channels)
			}
		}
		if said := strings.Contains(applied, fmt.Sprint("EXIF orientation ", o)); said != (o > 1) {
			t.Errorf("%s: note %q", name, applied)
		}
	}
	// Before the crop: the upright picture is wide, and its shorter side is the height.
	got, _, err := tensorOf(t.Context(), file, Recipe{Short: 2}, Want{DType: tensor.Uint8, Sizes: []int{1, 1, 2, 2}, Limit: testLimit})
	if err != nil || got.Data[0] >= got.Data[2] || got.Data[1] >= got.Data[3] {
		t.Errorf("%s: cropped to %v, %v", name, got, err)
	}
}

func TestStoredOrientation(t *testing.T) {
	r := Recipe{Height: 4, Width: 4, Stored: true}
	want := Want{DType: tensor.Float32, Sizes: []int{1, 1, 4, 4}, Limit: testLimit}
	up, _, err := tensorOf(t.Context(), read(t, "upright.jpg"), Recipe{Height: 4, Width: 4}, want)
	if err != nil {
		t.Fatal(err)
	}
	turned, _, err := tensorOf(t.Context(), read(t, "turned.jpg"), Recipe{Height: 4, Width: 4}, want)
	if err != nil {
		t.Fatal(err)
	}
	kept, applied, err := tensorOf(t.Context(), read(t, "turned.jpg"), r, want)
	if err != nil || strings.Contains(applied, "EXIF") {
		t.Fatalf("as stored: %q, %v", applied, err)
	}
	same, differ := 0, 0
	for i, v := range tensor.Data[float32](up) {
		if d := tensor.Data[float32](turned)[i] - v; d < 0.02 && d > -0.02 {
			same++
		}
		if d := tensor.Data[float32](kept)[i] - v; d > 0.1 || d < -0.1 {
			differ++
		}
	}
	if same != 16 || differ < 8 {
		t.Errorf("turned %v, kept %v, want %v and another", turned, kept, up)
	}
}

// TestMalformedOrientation requires that a picture with damaged tags is read as one without.
func TestMalformedOrientation(t *testing.T) {
	want := Want{DType: tensor.Uint8, Sizes: []int{1, 1, 8, 8}, Limit: testLimit}
	plain, _, err := tensorOf(t.Context(), read(t, "smooth.jpg"), Recipe{}, want)
	if err != nil {
		t.Fatal(err)
	}
	good := exifTags(binary.LittleEndian, 6)
	for _, tags := range [][]byte{nil, good[:5], good[:9], good[:15], exifTags(binary.BigEndian, 9), exifTags(binary.BigEndian, 0),
		bytes.Repeat([]byte{0xff}, 60000)} {
		got, _, err := tensorOf(t.Context(), withTags(read(t, "smooth.jpg"), tags), Recipe{}, want)
		if err != nil || !bytes.Equal(got.Data, plain.Data) {
			t.Errorf("% x…: got %v, %v", tags[:min(len(tags), 20)], got, err)
		}
	}
}
