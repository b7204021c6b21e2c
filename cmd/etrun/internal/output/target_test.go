package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"y.npy":                  {Path: "y.npy", Kind: "npy"},
		"1=y.PNG":                {Index: 1, Path: "y.PNG", Kind: "png"},
		"out2=a:b.json":          {Index: 2, Path: "a:b.json", Kind: "json"},
		"call3_out1=y.bin":       {Call: 3, Index: 1, Path: "y.bin", Kind: "bin"},
		"-:npy":                  {Path: "-", Kind: "npy"},
		"y.wav:rate=16000":       {Path: "y.wav", Kind: "wav", Rate: 16000},
		"1=sound:wav:rate=8000":  {Index: 1, Path: "sound", Kind: "wav", Rate: 8000},
		"./1=y.npy":              {Path: "./1=y.npy", Kind: "npy"},
		"y.tmp:json":             {Path: "y.tmp", Kind: "json"},
		"y.json:npy":             {Path: "y.json", Kind: "npy"},
		"/dev/fd/3:bin":          {Path: "/dev/fd/3", Kind: "bin"},
		"dir.npy/y.json:rate=12": {Path: "dir.npy/y.json", Kind: "json", Rate: 12},
	} {
		got, err := ParseTarget(text)
		want.text = text
		if err != nil || *got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"": "want a file", "1=": "want a file", "-": "append :KIND", "y.txt": "append :KIND", "y.wav": "append :rate=N", ":npy": "want a file"} {
		if _, err := ParseTarget(text); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// written returns the file written for a value.
func written(t *testing.T, name string, v tensor.Value) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	target, err := ParseTarget(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := target.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := target.Add(1, nil); err != nil { // another call
		t.Fatal(err)
	}
	if err := target.Add(0, []*tensor.Value{&v}); err != nil {
		return nil, err
	}
	if err := target.Commit(); err != nil {
		return nil, err
	}
	return os.ReadFile(target.Path)
}

func TestTargets(t *testing.T) {
	last := tensor.Make(tensor.Float32, []int{1, 2, 1, 2}, []uint8{0, 2, 3, 1}, tensor.Static) // channels last
	last.Bind(tensor.Of([]float32{0, 0.5, 1, float32(math.NaN())}, 4).Data)
	b, err := written(t, "y.json", tensor.TensorValue(last))
	if err != nil || string(b) != "[[[[0,1]],[[0.5,\"NaN\"]]]]\n" {
		t.Errorf("JSON: %s, %v", b, err)
	}
	for want, v := range map[string]tensor.Value{"null\n": {}, "-7\n": tensor.IntValue(-7), "true\n": tensor.BoolValue(true), "\"a\\\"\"\n": tensor.StringValue(`a"`),
		"[]\n": tensor.TensorValue(tensor.New(tensor.Int64, 0)), "9007199254740993\n": tensor.TensorValue(tensor.Of([]int64{9007199254740993})), "0.1\n": tensor.TensorValue(tensor.Of([]float32{0.1}))} {
		if b, err := written(t, "y.json", v); err != nil || string(b) != want || !json.Valid(b) {
			t.Errorf("JSON: got %q, %v, want %q", b, err, want)
		}
	}
	if b, err = written(t, "y.npy", tensor.TensorValue(last)); err != nil {
		t.Fatal(err)
	}
	a, err := npy.Read(bytes.NewReader(b), int64(len(b)), 1<<20)
	if err != nil || !slices.Equal(a.Sizes, last.Sizes) || !bytes.Equal(a.Data, last.Logical()) {
		t.Errorf("npy: %+v, %v", a, err)
	}
	if b, err = written(t, "y.bin", tensor.TensorValue(last)); err != nil || !bytes.Equal(b, last.Data) {
		t.Errorf("bin: %x, %v", b, err)
	}
	if b, err = written(t, "y.wav:rate=8000", tensor.TensorValue(tensor.Of([]int16{-1 << 15, 1 << 14}, 1, 2))); err != nil {
		t.Fatal(err)
	}
	if s, err := sound.Parse(b, 1<<20); err != nil || s.Rate != 8000 || !slices.Equal(s.Samples, []float32{-1, 0.5}) {
		t.Errorf("wav: %+v, %v", s, err)
	}
}

func TestPictureTargets(t *testing.T) {
	planes := tensor.Of([]float32{0, 1, 0.5, 2, -1, 0.2}, 1, 3, 1, 2) // channels in front
	behind := tensor.Of([]uint8{0, 128, 0, 255, 255, 51}, 1, 2, 1, 3)
	for name, c := range map[string]struct {
		t    *tensor.Tensor
		want [2][3]uint8
	}{
		"planes": {planes, [2][3]uint8{{0, 128, 0}, {255, 255, 51}}}, "behind": {behind, [2][3]uint8{{0, 128, 0}, {255, 255, 51}}},
		"gray": {tensor.Of([]int8{-128, 127}, 1, 2), [2][3]uint8{{0, 0, 0}, {255, 255, 255}}},
	} {
		b, err := written(t, "y.png", tensor.TensorValue(c.t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := png.Decode(bytes.NewReader(b))
		if err != nil || m.Bounds().Dx()*m.Bounds().Dy() != 2 {
			t.Errorf("%s: %v, %v", name, m, err)
			continue
		}
		for x, want := range c.want {
			r, g, bl, _ := m.At(x%m.Bounds().Dx(), x/m.Bounds().Dx()).RGBA()
			if got := [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8)}; got != want {
				t.Errorf("%s: pixel %d: got %v, want %v", name, x, got, want)
			}
		}
	}
}

func TestTargetsRefused(t *testing.T) {
	f32 := func(sizes ...int) tensor.Value { return tensor.TensorValue(tensor.New(tensor.Float32, sizes...)) }
	for _, c := range []struct {
		name string
		v    tensor.Value
		want string
	}{
		{"y.png", f32(1, 2, 8, 8), "not an image of 1, 3 or 4 channels"},
		{"y.png", tensor.TensorValue(tensor.New(tensor.Int64, 8, 8)), "int64"},
		{"y.png", f32(3, 0, 0), "not an image"},
		{"y.wav:rate=8000", f32(2, 8), "not a recording"},
		{"y.wav:rate=8000", tensor.TensorValue(tensor.New(tensor.Int64, 8)), "not a recording"},
		{"y.wav:rate=99999999", f32(8), "samples per second"},
		{"y.npy", tensor.StringValue("x"), "string"},
		{"y.json", tensor.TensorValue(tensor.New(tensor.Complex64, 2)), "not real numbers"},
	} {
		var e *Error
		if _, err := written(t, c.name, c.v); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	target, _ := ParseTarget("3=" + filepath.Join(t.TempDir(), "y.npy"))
	defer target.Close()
	if err := target.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := f32(1)
	if err := target.Add(0, []*tensor.Value{&v}); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), "no output 3") {
		t.Errorf("got %v", err)
	}
	if err := target.Commit(); !errors.Is(err, ErrTarget) {
		t.Errorf("got %v", err)
	}
}

func TestScores(t *testing.T) {
	logits := tensor.Of([]float32{0, 2, 1}, 1, 3)
	if s := new(Scores).Summarize(logits); s.Top != nil {
		t.Errorf("three elements look like logits: %v", s.Top)
	}
	o := Scores{Top: 2, Softmax: true, Labels: []string{"a", "b"}}
	s := o.Summarize(logits)
	if len(s.Top) != 2 || s.Top[0].Class != 1 || s.Top[0].Label != "b" || s.Top[1].Label != "" || math.Abs(float64(s.Top[0].Score)-0.66524) > 1e-4 {
		t.Errorf("got %+v", s.Top)
	}
	var b strings.Builder
	v := tensor.TensorValue(logits)
	o.Print(&b, 0, &v)
	if !strings.Contains(b.String(), "1 b (0.66524)") {
		t.Errorf("got %s", b.String())
	}
	if s := (&Scores{Top: 9}).Summarize(tensor.Of([]int8{3, -4}, 2)); len(s.Top) != 2 || s.Top[0].Score != 3 {
		t.Errorf("got %+v", s.Top)
	}
	if s := (&Scores{Top: 9}).Summarize(tensor.New(tensor.Float32, 2, 2)); s.Top != nil {
		t.Errorf("two rows: %+v", s.Top)
	}
}
