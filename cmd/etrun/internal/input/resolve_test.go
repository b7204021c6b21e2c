package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// slotOf declares a static float32 input.
func slotOf(sizes ...int) etrun.ValueMeta {
	return etrun.ValueMeta{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes))}
}

func channelsLast(s etrun.ValueMeta) etrun.ValueMeta { s.DimOrder = []uint8{0, 2, 3, 1}; return s }
func bounded(s etrun.ValueMeta) etrun.ValueMeta      { s.Dynamism = tensor.DynamicBound; return s }
func named(s etrun.ValueMeta, name string) etrun.ValueMeta {
	s.Name = name
	return s
}

// inFolder changes to a folder with the files of the cases.
func inFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	six := tensor.Of([]float32{0, 1, 2, 3, 4, 5}, 1, 2, 1, 3)
	write(t, "six.bin", six.Data)
	write(t, "six.npy", encode(t, func(b *bytes.Buffer) error { return npy.Write(b, six) }))
	two := []*tensor.Tensor{tensor.Of([]float32{7}, 1), tensor.Of([]float32{8}, 1)}
	write(t, "order.npz", zipped(t, two, "p", "q"))
	write(t, "number.npz", zipped(t, two, "arr_1", "arr_0"))
	write(t, "name.npz", zipped(t, two, "b", "a"))
}

// zipped returns an archive of tensors.
func zipped(t *testing.T, tensors []*tensor.Tensor, names ...string) []byte {
	t.Helper()
	return encode(t, func(b *bytes.Buffer) error {
		z := npy.NewZipWriter(b)
		for i, x := range tensors {
			if err := z.Add(names[i], x); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, f func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func resolve(args string, slots []etrun.ValueMeta, limit int64) ([]tensor.Value, error) {
	var specs []Spec
	for _, a := range strings.Fields(args) {
		s, err := Parse(a)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	r := &Resolver{Seed: 1, Limit: limit, Say: func(string, ...any) {}}
	return r.Resolve(context.Background(), specs, slots)
}

// brief formats a value with its elements in memory order.
func brief(v tensor.Value) string {
	switch v.Kind {
	case tensor.KindTensor:
		if t := v.Tensor; !slices.Equal(t.DimOrder, tensor.ContiguousOrder(t.Rank())) {
			return fmt.Sprintf("%v in order %v %v", t, t.DimOrder, tensor.Data[float32](t))
		}
		return fmt.Sprint(v.Tensor, tensor.Data[float32](v.Tensor))
	case tensor.KindInt:
		return fmt.Sprint(v.Int)
	case tensor.KindDouble:
		return fmt.Sprint(v.Double)
	case tensor.KindBool:
		return fmt.Sprint(v.Bool)
	case tensor.KindString:
		return fmt.Sprintf("%q", v.Str)
	}
	return v.Kind.String()
}

func TestResolve(t *testing.T) {
	inFolder(t)
	one, none, integer := slotOf(1), etrun.ValueMeta{}, etrun.ValueMeta{Kind: tensor.KindInt, Scalar: tensor.IntValue(3)}
	cases := []struct {
		args  string
		slots []etrun.ValueMeta
		want  string
	}{
		{"six.bin", []etrun.ValueMeta{slotOf(1, 2, 1, 3)}, "float32 1x2x1x3 [0 1 2 3 4 5]"},
		{"six.bin", []etrun.ValueMeta{channelsLast(slotOf(1, 2, 1, 3))}, "float32 1x2x1x3 in order [0 2 3 1] [0 1 2 3 4 5]"},
		{"six.bin:float32:1x2x3x1", []etrun.ValueMeta{channelsLast(slotOf(1, 2, 1, 3))}, "float32 1x2x3x1 in order [0 2 3 1] [0 1 2 3 4 5]"}, // refused by the method
		{"six.npy", []etrun.ValueMeta{slotOf(1, 2, 1, 3)}, "float32 1x2x1x3 [0 1 2 3 4 5]"},
		{"six.npy", []etrun.ValueMeta{channelsLast(slotOf(1, 2, 1, 3))}, "float32 1x2x1x3 [0 1 2 3 4 5]"}, // contiguous: the method lays it out
		{"six.npy", []etrun.ValueMeta{bounded(slotOf(1, 2, 4, 4))}, "float32 1x2x1x3 [0 1 2 3 4 5]"},
		{"six.bin", []etrun.ValueMeta{bounded(slotOf(1, 9))}, "float32 1x6 [0 1 2 3 4 5]"}, // only one size can vary
		{"six.bin:float32:3x2", []etrun.ValueMeta{bounded(slotOf(4, 4))}, "float32 3x2 [0 1 2 3 4 5]"},
		{"order.npz", []etrun.ValueMeta{one, one}, "float32 1 [7]; float32 1 [8]"},
		{"number.npz", []etrun.ValueMeta{one, one}, "float32 1 [8]; float32 1 [7]"},
		{"name.npz", []etrun.ValueMeta{named(one, "a"), named(one, "b")}, "float32 1 [8]; float32 1 [7]"},
		{"0=int:4 order.npz", []etrun.ValueMeta{none, one, one}, "4; float32 1 [7]; float32 1 [8]"},
		{"ones b=zeros", []etrun.ValueMeta{named(one, "b"), one}, "float32 1 [0]; float32 1 [1]"},
		{"1=ones 0=zeros", []etrun.ValueMeta{one, one}, "float32 1 [0]; float32 1 [1]"},
		{"int:5 float:0.5 bool:true", []etrun.ValueMeta{integer, {Kind: tensor.KindDouble}, {Kind: tensor.KindBool}}, "5; 0.5; true"},
		{"str:inc none int:2", []etrun.ValueMeta{none, none, none}, `"inc"; none; 2`},
		{"zeros ones ones ones zeros", []etrun.ValueMeta{integer, {Kind: tensor.KindDouble}, {Kind: tensor.KindBool}, none, {Kind: tensor.KindString}}, `0; 1; true; none; ""`},
		{"zeros:float32:2x0", []etrun.ValueMeta{bounded(slotOf(4, 4))}, "float32 2x0 []"},
		{"ones:float32:scalar", []etrun.ValueMeta{slotOf()}, "float32 scalar [1]"},
		{"", nil, ""},
	}
	for _, c := range cases {
		values, err := resolve(c.args, c.slots, 1<<10)
		var got []string
		for _, v := range values {
			got = append(got, brief(v))
		}
		if err != nil || strings.Join(got, "; ") != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.args, got, err, c.want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	inFolder(t)
	write(t, "cut.npy", []byte("\x93NUM"))
	one := slotOf(1)
	cases := []struct {
		name  string
		args  string
		slots []etrun.ValueMeta
		class error
		text  string
	}{
		{"one missing", "ones", []etrun.ValueMeta{one, named(one, "mask")}, ErrMismatch, `input 1 "mask": missing, want float32 1`},
		{"one too many", "ones ones", []etrun.ValueMeta{one}, ErrMismatch, "ones: one input too many, the method has 1"},
		{"one twice", "0=ones 0=zeros", []etrun.ValueMeta{one}, ErrMismatch, "input 0 is set twice, by 0=ones and 0=zeros"},
		{"no such name", "x=ones", []etrun.ValueMeta{named(one, "y")}, ErrSpec, `no input "x"; the method has 1, 0 is "y"`},
		{"no such index", "7=ones", []etrun.ValueMeta{one}, ErrSpec, `no input "7"; the method has 1`},
		{"file too short", "six.bin", []etrun.ValueMeta{slotOf(7)}, ErrMismatch, "input 0 (six.bin): 24 bytes, want 28 (float32 7)"},
		{"file of other bounds", "six.bin", []etrun.ValueMeta{bounded(slotOf(7, 2))}, ErrMismatch, "set other sizes as six.bin:float32:7x2"},
		{"file beyond the bound", "six.bin", []etrun.ValueMeta{bounded(slotOf(5))}, ErrMismatch, "24 bytes, want 20"},
		{"file of half an element", "six.bin", []etrun.ValueMeta{bounded(etrun.ValueMeta{Kind: tensor.KindTensor, DType: tensor.Complex128, Sizes: []int{7}})}, ErrMismatch, "24 bytes"},
		{"stated sizes, wrong bytes", "six.bin:float32:7", []etrun.ValueMeta{bounded(slotOf(9))}, ErrMismatch, "24 bytes, want 28"},
		{"array of other type", "six.npy", []etrun.ValueMeta{{Kind: tensor.KindTensor, DType: tensor.Int32, Sizes: []int{6}}}, ErrMismatch, "float32 1x2x1x3, want int32 6"},
		{"array of other sizes than stated", "six.npy:float32:6", []etrun.ValueMeta{bounded(slotOf(6))}, ErrMismatch, "array of 1x2x1x3"},
		{"array cut off", "cut.npy", []etrun.ValueMeta{one}, npy.ErrFormat, "malformed npy"},
		{"archive for one input", "0=order.npz", []etrun.ValueMeta{one, one}, ErrMismatch, "2 arrays for one input"},
		{"archive with too many", "order.npz", []etrun.ValueMeta{one}, ErrMismatch, "one input too many"},
		{"archive that is none", "six.bin order.npz", []etrun.ValueMeta{slotOf(6), one}, ErrMismatch, "one input too many"},
		{"tensor for a scalar", "six.bin", []etrun.ValueMeta{{Kind: tensor.KindInt}}, ErrMismatch, "elements of a tensor, want int"},
		{"no file", "absent.bin", []etrun.ValueMeta{one}, fs.ErrNotExist, "absent.bin"},
		{"no archive", "absent.npz", []etrun.ValueMeta{one}, fs.ErrNotExist, "absent.npz"},
		{"a folder", ".", []etrun.ValueMeta{one}, nil, "input 0 (.)"},
		{"beyond the limit", "zeros zeros", []etrun.ValueMeta{slotOf(200), slotOf(200)}, ErrMemory, "input 1 (zeros): 800 bytes, the remaining limit is 224"},
		{"random elements of no number", "rand", []etrun.ValueMeta{{Kind: tensor.KindTensor, DType: tensor.QInt8, Sizes: []int{1}}}, ErrMismatch, "elements of qint8"},
	}
	for _, c := range cases {
		values, err := resolve(c.args, c.slots, 1<<10)
		if values != nil || err == nil || c.class != nil && !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v and %v, want %v with %q", c.name, values, err, c.class, c.text)
		}
	}
}

// A declared size is not allocated for a file that is smaller.
func TestRawChecksSizeFirst(t *testing.T) {
	inFolder(t)
	_, err := resolve("six.bin", []etrun.ValueMeta{slotOf(1 << (bits.UintSize - 8))}, 1<<62)
	if !errors.Is(err, ErrMismatch) {
		t.Errorf("got %v, want %v", err, ErrMismatch)
	}
}

func TestPictureIsSaid(t *testing.T) {
	path, err := filepath.Abs("../../../../media/picture/testdata/noise.png")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := Parse(path + ":size=8x8")
	if err != nil {
		t.Fatal(err)
	}
	var said string
	r := &Resolver{Limit: 1 << 20, Say: func(f string, args ...any) { said = fmt.Sprintf(f, args...) }}
	values, err := r.Resolve(t.Context(), []Spec{spec}, []etrun.ValueMeta{slotOf(1, 3, 8, 8)})
	if err != nil {
		t.Fatal(err)
	}
	if got := values[0].Tensor.Sizes; !slices.Equal(got, []int{1, 3, 8, 8}) || !strings.Contains(said, "53×37 pixels, resized to 8×8") {
		t.Errorf("got sizes %v, said %q", got, said)
	}
	if _, err := r.Resolve(t.Context(), []Spec{spec}, []etrun.ValueMeta{slotOf(1, 5, 8, 8)}); !errors.Is(err, ErrMismatch) {
		t.Errorf("picture for 5 channels: got %v, want %v", err, ErrMismatch)
	}
}

func TestRandom(t *testing.T) {
	slots := []etrun.ValueMeta{slotOf(1000), slotOf(1000), {Kind: tensor.KindInt, Scalar: tensor.IntValue(3)}}
	for d, most := range map[tensor.DType]float64{tensor.Uint8: 255, tensor.Int8: 127, tensor.Int64: 1, tensor.Bool: 1, tensor.BFloat16: 1, tensor.Float64: 1} {
		slots = append(slots, etrun.ValueMeta{Kind: tensor.KindTensor, DType: d, Sizes: []int{1000}, Scalar: tensor.DoubleValue(most)})
	}
	values, err := (&Resolver{Seed: 1, Limit: 1 << 20}).Resolve(t.Context(), Random(slots), slots)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := (&Resolver{Seed: 1, Limit: 1 << 20}).Resolve(t.Context(), Random(slots), slots)
	other, _ := (&Resolver{Seed: 2, Limit: 1 << 20}).Resolve(t.Context(), Random(slots), slots)
	data := func(v []tensor.Value) []byte { return v[0].Tensor.Data }
	if !bytes.Equal(data(values), data(again)) || bytes.Equal(data(values), data(other)) || bytes.Equal(data(values), values[1].Tensor.Data) {
		t.Error("elements must depend on the seed and the index, and on nothing else")
	}
	if values[2].Int != 3 {
		t.Errorf("scalar: got %d, want the value at export, 3", values[2].Int)
	}
	for i, v := range values[3:] {
		d, most := v.Tensor.DType, slots[3+i].Scalar.Double
		got := make([]float64, 1000)
		tensor.Loader[float64](d)(got, v.Tensor.Data)
		if hi := slices.Max(got); hi > most || hi < 0.9*most {
			t.Errorf("%v: largest of 1000 random elements %v, want about %v", d, hi, most)
		}
	}
}

// The elements for a seed are stable: the same on every machine and release.
func TestRandomIsStable(t *testing.T) {
	values, err := resolve("rand", []etrun.ValueMeta{slotOf(3)}, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(tensor.Data[float32](values[0].Tensor)), "[0.23842318 0.50092137 0.04999911]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
