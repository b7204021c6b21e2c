package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/exif"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// testLimit is the memory limit of most tests.
const testLimit = 64 << 20

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tensorOf returns the parts of an input that most tests compare.
func tensorOf(ctx context.Context, file []byte, r Recipe, want Want) (*tensor.Tensor, string, error) {
	in, err := Tensor(ctx, file, r, want)
	return in.Tensor, in.Applied, err
}

func decoded(t *testing.T, name string, channels int) Pixels {
	t.Helper()
	p, err := decode(t.Context(), read(t, name), channels, exif.Upright)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compare compares bytes with Pillow's, with a tolerance of slack each.
func compare(t *testing.T, got []byte, file string, slack int) {
	t.Helper()
	want := read(t, file)
	if len(got) != len(want) {
		t.Fatalf("%s: %d bytes, want %d", file, len(got), len(want))
	}
	for i := range want {
		if d := int(got[i]) - int(want[i]); d > slack || -d > slack {
			t.Fatalf("%s: byte %d: got %d, want %d (within %d)", file, i, got[i], want[i], slack)
		}
	}
}

func TestDecodeEqualsPillow(t *testing.T) {
	compare(t, decoded(t, "noise.png", 1).Data, "noise.gray.bin", 0)
	compare(t, decoded(t, "gray.png", 1).Data, "noise.gray.bin", 0)
	compare(t, decoded(t, "palette.png", 3).Data, "palette.rgb.bin", 0)
	compare(t, decoded(t, "alpha.png", 3).Data, "alpha.rgb.bin", 0)
	compare(t, decoded(t, "smooth.jpg", 3).Data, "smooth.rgb.bin", 0)
}

func TestResizeEqualsPillow(t *testing.T) {
	p := decoded(t, "noise.png", 3)
	for _, c := range []struct{ w, h int }{{8, 8}, {16, 37}, {53, 11}, {80, 60}, {13, 50}} {
		compare(t, p.Resize(c.h, c.w, Bilinear).Data, fmt.Sprintf("noise.%dx%d.bin", c.w, c.h), 0)
	}
}

func TestFiltersEqualPillow(t *testing.T) {
	p := decoded(t, "noise.png", 3)
	for _, name := range []string{"nearest", "lanczos", "bicubic", "box", "hamming"} {
		f, ok := FilterNamed(name)
		if !ok {
			t.Fatalf("no filter %s", name)
		}
		for _, c := range []struct{ w, h int }{{16, 37}, {60, 41}, {9, 5}} {
			compare(t, p.Resize(c.h, c.w, f).Data, fmt.Sprintf("noise.%dx%d.%s.bin", c.w, c.h, name), 0)
		}
	}
}

func TestTensorEqualsTorchvision(t *testing.T) {
	r := Recipe{Short: 20, Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}
	pixels := read(t, "noise.short20.crop15.bin")
	got, applied, err := tensorOf(t.Context(), read(t, "noise.png"), r, Want{DType: tensor.Float32, Sizes: []int{1, 3, 15, 15}, Limit: testLimit})
	if err != nil {
		t.Fatal(err)
	}
	if want := "53×37 pixels, resized to 28×20, center cropped to 15×15, scaled to 0…1, mean [0.485 0.456 0.406], std [0.229 0.224 0.225], layout nchw"; applied != want {
		t.Errorf("applied %q, want %q", applied, want)
	}
	data := tensor.Data[float32](got)
	for i, v := range pixels {
		c, x, y := i%3, i/3%15, i/45
		want := (float32(v)/255 - r.Mean[c]) / r.Std[c]
		if g := data[(c*15+y)*15+x]; g != want {
			t.Fatalf("channel %d row %d column %d: got %v, want %v", c, y, x, g, want)
		}
	}
}

func TestTensorLayouts(t *testing.T) {
	cases := []struct {
		name    string
		recipe  Recipe
		want    Want
		sizes   []int
		applied string // a part
	}{
		{"a stated crop", Recipe{Short: 20, CropH: 15, CropW: 10}, Want{DType: tensor.Float32, Sizes: []int{1, 3, 64, 64}, Dynamic: true}, []int{1, 3, 15, 10},
			"resized to 28×20, center cropped to 10×15"},
		{"channels first", Recipe{}, Want{DType: tensor.Float32, Sizes: []int{1, 3, 8, 8}}, []int{1, 3, 8, 8}, "resized to 11×8, center cropped to 8×8"},
		{"channels behind", Recipe{}, Want{DType: tensor.Uint8, Sizes: []int{1, 8, 8, 3}}, []int{1, 8, 8, 3}, "0…255, layout nhwc"},
		{"no batch", Recipe{}, Want{DType: tensor.Int8, Sizes: []int{3, 8, 8}}, []int{3, 8, 8}, "shifted by -128, layout nchw"},
		{"a matrix", Recipe{}, Want{DType: tensor.Float64, Sizes: []int{8, 8}}, []int{8, 8}, "layout hw"},
		{"gray", Recipe{}, Want{DType: tensor.Float16, Sizes: []int{1, 1, 8, 8}}, []int{1, 1, 8, 8}, "mean [0], std [1]"},
		{"both ends could be channels", Recipe{}, Want{DType: tensor.Float32, Sizes: []int{1, 1, 8, 1}}, []int{1, 1, 8, 1}, "nchw"},
		{"told to take the last", Recipe{Layout: NHWC}, Want{DType: tensor.Float32, Sizes: []int{1, 3, 8, 3}}, []int{1, 3, 8, 3}, "nhwc"},
		{"dynamic sides", Recipe{Height: 6, Width: 7}, Want{DType: tensor.Float32, Sizes: []int{4, 3, 16, 16}, Dynamic: true}, []int{1, 3, 6, 7}, "resized to 7×6"},
		{"dynamic sides, wider than the bound", Recipe{Short: 16}, Want{DType: tensor.Float32, Sizes: []int{1, 3, 16, 16}, Dynamic: true}, []int{1, 3, 16, 16}, "cropped to 16×16"},
	}
	for _, c := range cases {
		c.want.Limit = testLimit
		got, applied, err := tensorOf(t.Context(), read(t, "noise.png"), c.recipe, c.want)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !slices.Equal(got.Sizes, c.sizes) || got.DType != c.want.DType || !strings.Contains(applied, c.applied) {
			t.Errorf("%s: got %v by %q, want %v%v by %q", c.name, got, applied, c.want.DType, c.sizes, c.applied)
		}
	}
}

func TestTensorRefuses(t *testing.T) {
	picture := read(t, "noise.png")
	f32 := func(sizes ...int) Want { return Want{DType: tensor.Float32, Sizes: sizes} }
	cases := []struct {
		name   string
		file   []byte
		recipe Recipe
		want   Want
		text   string
	}{
		{"no channels", picture, Recipe{}, f32(1, 2, 8, 8), "is not an image of 1 or 3 channels"},
		{"rank 5", picture, Recipe{}, f32(1, 1, 3, 8, 8), "is not an image"},
		{"a batch", picture, Recipe{}, f32(4, 3, 8, 8), "a batch of 4"},
		{"smaller than the input", picture, Recipe{Short: 4}, f32(1, 3, 8, 8), "resized to 5×4, the input is 8×8"},
		{"means for three channels, one is there", picture, Recipe{Mean: []float32{1, 2, 3}}, f32(1, 1, 8, 8), "3 values of mean or std for 1 channels"},
		{"integers", picture, Recipe{}, Want{DType: tensor.Int64, Sizes: []int{1, 3, 8, 8}}, "floats, uint8 or int8"},
		{"normalized integers", picture, Recipe{Mean: []float32{1}}, Want{DType: tensor.Uint8, Sizes: []int{1, 3, 8, 8}}, "mean, std or a scale for an input of uint8"},
		{"not an image", []byte("hello"), Recipe{}, f32(1, 3, 8, 8), "unknown format"},
		{"a picture cut off", picture[:200], Recipe{}, f32(1, 3, 8, 8), "png"},
		{"an input without pixels", picture, Recipe{}, f32(1, 3, 0, 0), "resized to"},
		{"an input too large", picture, Recipe{}, f32(1, 3, math.MaxInt32, math.MaxInt32), "resized to"},
	}
	for _, c := range cases {
		c.want.Limit = testLimit
		got, _, err := tensorOf(t.Context(), c.file, c.recipe, c.want)
		if got != nil || err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v and %v, want an error with %q", c.name, got, err, c.text)
		}
	}
}

func FuzzTensor(f *testing.F) {
	for _, name := range []string{"noise.png", "palette.png", "smooth.jpg", "turned.jpg", "others/lossy_alpha.webp", "others/lossless.webp",
		"others/transparent.gif", "others/animated.gif"} {
		f.Add(read(f, name), uint8(9), uint8(0))
	}
	f.Add(withTags(read(f, "noise.png"), exifTags(binary.BigEndian, 8)), uint8(0), uint8(8))
	f.Fuzz(func(t *testing.T, file []byte, short, crop uint8) {
		r := Recipe{Short: int(short) % 64, CropH: int(crop), CropW: int(crop)}
		const limit = 256 << 20 // a lossless WebP file needs more than testLimit
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, _, err := tensorOf(t.Context(), bytes.Clone(file), r, Want{DType: tensor.Float32, Sizes: []int{1, 3, 8, 8}, Limit: limit})
		runtime.ReadMemStats(&after)
		if (got == nil) == (err == nil) {
			t.Fatalf("tensor %v and error %v", got, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > limit+1<<20 {
			t.Fatalf("%d bytes allocated, the limit is %d", n, limit)
		}
	})
}
