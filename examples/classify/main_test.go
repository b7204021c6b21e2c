package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/exif"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Nearly all test images get their label.
func TestClassify(t *testing.T) {
	h, err := newServer(t.Context(), "../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	images, labels := read(t, "../../testdata/digits/images.f32.bin"), read(t, "../../testdata/digits/labels.u8.bin")
	right := 0
	for i, label := range labels {
		picture := image.NewGray16(image.Rect(0, 0, size, size))
		for k := range size * size {
			x := math.Float32frombits(binary.LittleEndian.Uint32(images[(i*size*size+k)*4:]))
			picture.SetGray16(k%size, k/size, color.Gray16{Y: uint16(x * 0xffff)})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, picture); err != nil {
			t.Fatal(err)
		}
		if _, text := ask(h, "POST", "/classify", b.String()); strings.Contains(text, fmt.Sprintf(`{"digit":%d}`, label)) {
			right++
		}
	}
	if right < 95 {
		t.Errorf("%d of %d pictures are right", right, len(labels))
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		text               string
	}{
		{"POST", "/classify", "not an image", 400, "PNG"},
		{"GET", "/v2/models/digits", "", 200, `"shape":[1,1,8,8]`},
		{"POST", "/v2/models/sums/infer", `{"parameters":{"sequence_id":1,"sequence_start":true},"inputs":[{"name":"input_0","shape":[4],"datatype":"FP32","data":[1,2,3,4]}]}`, 200, `"outputs"`},
		{"GET", "/metrics", "", 200, `classified_total{digit="3"}`},
		{"GET", "/metrics", "", 200, `etrun_inferences_total{method="forward",model="pictures",result="ok"} 100`},
	} {
		if code, text := ask(h, c.method, c.path, c.body); code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d, %.200s, want %d with %s", c.path, code, text, c.code, c.text)
		}
	}
}

// TestTurned follows the first stored pixel to its corner of the upright picture.
func TestTurned(t *testing.T) {
	picture := image.NewGray(image.Rect(0, 0, size, size))
	picture.SetGray(0, 0, color.Gray{Y: 255})
	for o, want := range map[exif.Orientation]int{exif.Upright: 0, 3: size*size - 1, 6: size - 1, 8: size * (size - 1)} {
		if got := slices.Index(pixels(picture, o), 1); got != want {
			t.Errorf("orientation %d: pixel %d is white, want %d", o, got, want)
		}
	}
}

func ask(h http.Handler, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}
