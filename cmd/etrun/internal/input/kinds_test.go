package input

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
)

// valuesOf returns the values of arguments for slots.
func valuesOf(t *testing.T, limit int64, args []string, slots ...etrun.ValueMeta) ([]tensor.Value, error) {
	t.Helper()
	var specs []Spec
	for _, a := range args {
		s, err := Parse(a)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	r := Resolver{Limit: limit, Say: func(string, ...any) {}}
	return r.Resolve(t.Context(), specs, slots)
}

func typed(d tensor.DType, sizes ...int) etrun.ValueMeta {
	s := slotOf(sizes...)
	s.DType = d
	return s
}

func scalar(k tensor.Kind) etrun.ValueMeta { return etrun.ValueMeta{Kind: k} }

// inKinds writes a file of each kind under a name without a matching extension.
func inKinds(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	picture, err := os.ReadFile(noise)
	if err != nil {
		t.Fatal(err)
	}
	two := tensor.Of([]float32{1.5, -2}, 2)
	var stereo, mono bytes.Buffer
	if err := errors.Join(sound.WriteWave(&mono, 8000, []float32{0.5, -0.5, 0.25})); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	stereo.WriteString("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00")
	stereo.Write(le.AppendUint32(le.AppendUint32(nil, 8000), 0))
	stereo.WriteString("\x04\x00\x10\x00data\x08\x00\x00\x00\x00\x40\x00\xc0\x00\x20\x00\x20")
	header := `{"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}}`
	for name, b := range map[string][]byte{
		"array": encode(t, func(b *bytes.Buffer) error { return npy.Write(b, two) }), "archive": zipped(t, []*tensor.Tensor{two}, "x"),
		"picture": picture, "mono": mono.Bytes(), "stereo": stereo.Bytes(), "list": []byte(" [ 1.5, -2 ]\n"), "raw.npy": two.Data,
		"object.json": []byte(`{"b": [1.5, -2], "a": [7]}`), "array.png": encode(t, func(b *bytes.Buffer) error { return npy.Write(b, two) }),
		"tensors": append(append(le.AppendUint64(nil, uint64(len(header))), header...), append(slices.Clone(two.Data), 7, 0, 0, 0, 0, 0, 0, 0)...),
	} {
		write(t, name, b)
	}
}

var noise, _ = func() (string, error) {
	dir, err := os.Getwd()
	return dir + "/../../../../media/picture/testdata/noise.png", err
}()

func TestKindsByContent(t *testing.T) {
	inKinds(t)
	two := []float32{1.5, -2}
	for _, c := range []struct {
		args []string
		slot etrun.ValueMeta
		want []float32
	}{
		{[]string{"array"}, slotOf(2), two},
		{[]string{"array.png"}, slotOf(2), two},
		{[]string{"archive"}, slotOf(2), two},
		{[]string{"list"}, slotOf(2), two},
		{[]string{"json:[1.5,-2]"}, slotOf(2), two},
		{[]string{"mono"}, slotOf(3), []float32{0.5, -0.5, 0.25}},
		{[]string{"mono"}, slotOf(1, 1, 3), []float32{0.5, -0.5, 0.25}},
		{[]string{"mono:rate=8000"}, slotOf(3), []float32{0.5, -0.5, 0.25}},
		{[]string{"mono:length=fit"}, slotOf(5), []float32{0.5, -0.5, 0.25, 0, 0}},
		{[]string{"mono:length=fit"}, slotOf(2), []float32{0.5, -0.5}},
		{[]string{"mono"}, bounded(slotOf(1, 9)), []float32{0.5, -0.5, 0.25}},
		{[]string{"stereo:channel=1"}, slotOf(2), []float32{0.5, 0.25}},
		{[]string{"stereo:channel=mix"}, slotOf(2), []float32{0, 0.25}},
	} {
		values, err := valuesOf(t, 1<<20, c.args, c.slot)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		if got := tensor.Data[float32](values[0].Tensor); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.args, got, c.want)
		}
	}
	for _, args := range [][]string{{"picture"}, {"picture:resize=8x8"}} {
		values, err := valuesOf(t, 1<<22, args, slotOf(1, 3, 8, 8))
		if err != nil || slices.Max(tensor.Data[float32](values[0].Tensor)) == 0 {
			t.Errorf("%v: %v, %v", args, values, err)
		}
	}
}

// The members of an object, and the tensors of a file, are assigned by name.
func TestNamedKinds(t *testing.T) {
	inKinds(t)
	for _, file := range []string{"object.json", "tensors", `json:{"a":[7],"b":[1.5,-2]}`} {
		values, err := valuesOf(t, 1<<20, []string{file}, named(typed(tensor.Int64, 1), "a"), named(slotOf(2), "b"))
		if err != nil || tensor.Data[int64](values[0].Tensor)[0] != 7 || tensor.Data[float32](values[1].Tensor)[1] != -2 {
			t.Errorf("%s: got %v, %v", file, values, err)
		}
	}
}

func TestJSONValues(t *testing.T) {
	for _, c := range []struct {
		arg  string
		slot etrun.ValueMeta
		want any
	}{
		{"json:[[1,2],[3,4]]", typed(tensor.Int8, 2, 2), []int8{1, 2, 3, 4}},
		{"json:9223372036854775807", typed(tensor.Int64), []int64{math.MaxInt64}},
		{"json:[9007199254740993]", typed(tensor.Int64, 1), []int64{9007199254740993}},
		{"json:[true,false,1]", typed(tensor.Bool, 3), []bool{true, false, true}},
		{"json:[[],[]]", typed(tensor.Float64, 2, 0), []float64{}},
	} {
		values, err := valuesOf(t, 1<<20, []string{c.arg}, c.slot)
		if err != nil || !slices.Equal(values[0].Tensor.Sizes, c.slot.Sizes) {
			t.Errorf("%s: got %v, %v", c.arg, values, err)
			continue
		}
		var same bool
		switch want := c.want.(type) {
		case []int8:
			same = slices.Equal(tensor.Data[int8](values[0].Tensor), want)
		case []int64:
			same = slices.Equal(tensor.Data[int64](values[0].Tensor), want)
		case []bool:
			same = slices.Equal(tensor.Data[bool](values[0].Tensor), want)
		case []float64:
			same = len(values[0].Tensor.Data) == 0
		}
		if !same {
			t.Errorf("%s: got %v, want %v", c.arg, values[0].Tensor.Data, c.want)
		}
	}
	values, err := valuesOf(t, 1<<20, []string{"json:3", "json:2.5", "json:true", `json:"a b"`, "json:null"},
		scalar(tensor.KindInt), scalar(tensor.KindDouble), scalar(tensor.KindBool), scalar(tensor.KindString), scalar(tensor.None))
	if err != nil || values[0].Int != 3 || values[1].Double != 2.5 || !values[2].Bool || values[3].Str != "a b" || values[4].Kind != tensor.None {
		t.Errorf("got %v, %v", values, err)
	}
}

func TestKindsRefused(t *testing.T) {
	inKinds(t)
	deep := "json:" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for _, c := range []struct {
		arg   string
		slot  etrun.ValueMeta
		limit int64
		err   error
		text  string
	}{
		{"raw.npy", slotOf(2), 1 << 20, ErrFile, "first bytes"},
		{"mono", slotOf(2), 1 << 20, ErrMismatch, "3 samples, want float32 2; :length=fit"},
		{"mono:rate=16000", slotOf(3), 1 << 20, ErrMismatch, "8000 Hz, want 16000; convert it with :resample=16000"},
		{"mono:channel=2", slotOf(3), 1 << 20, ErrMismatch, "channel 2, the file has 1"},
		{"mono:resample=768000", slotOf(288), 100, ErrMemory, ""},
		{"mono", typed(tensor.Int16, 3), 1 << 20, ErrMismatch, "16-bit files"},
		{"mono", slotOf(2, 3), 1 << 20, ErrMismatch, "a recording"},
		{"stereo", slotOf(2), 1 << 20, ErrMismatch, "2 channels; set :channel=1"},
		{"stereo:channel=0", slotOf(2), 1 << 20, ErrSpec, "counted from 1"},
		{"mono:pitch=2,rate=3", slotOf(2), 1 << 20, ErrFile, "no such file"},
		{"x.wav:pitch=2", slotOf(2), 1 << 20, ErrSpec, "want one of rate"},
		{"tensors:float32:2", slotOf(2), 1 << 20, ErrMismatch, "bytes, want 8"},
		{"json:[1,[2]]", slotOf(2), 1 << 20, ErrMismatch, "a list in a list of numbers"},
		{"json:[[1],2]", slotOf(2), 1 << 20, ErrMismatch, "a number in a list of lists"},
		{"json:[[1],[2,3]]", slotOf(2), 1 << 20, ErrMismatch, "lists of 1 and of 2"},
		{"json:[1,2", slotOf(2), 1 << 20, ErrFile, "unexpected end"},
		{"json:[1] [2]", slotOf(2), 1 << 20, ErrFile, "text after the value"},
		{"json:[256]", typed(tensor.Uint8, 1), 1 << 20, ErrMismatch, "element 0 is 256, want uint8"},
		{"json:[1.5]", typed(tensor.Int64, 1), 1 << 20, ErrMismatch, "element 0 is 1.5"},
		{`json:["1"]`, slotOf(1), 1 << 20, ErrMismatch, `element 0 is "1"`},
		{"json:1e999", slotOf(), 1 << 20, ErrMismatch, "1e999"},
		{"json:[1,2,3,4]", slotOf(4), 16, ErrMemory, "more than 8 bytes"},
		{deep, slotOf(1), 1 << 20, ErrMismatch, "more than 16 levels"},
		{`json:{"x":[1]}`, slotOf(1), 1 << 20, ErrMismatch, ""},
		{"json:2.5", scalar(tensor.KindInt), 1 << 20, ErrMismatch, "2.5, want int"},
	} {
		values, err := valuesOf(t, c.limit, []string{c.arg}, c.slot)
		if c.text == "" && err == nil && c.err == ErrMismatch {
			continue // names of one value need not be the input's
		}
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%.60s: got %v, %v, want %v with %q", c.arg, values, err, c.err, c.text)
		}
	}
}

func TestFillOfTheModelsType(t *testing.T) {
	values, err := valuesOf(t, 1<<20, []string{"rand:1x3x4x9"}, bounded(typed(tensor.Int8, 2, 3, 8, 9)))
	if err != nil || values[0].Tensor.DType != tensor.Int8 || !slices.Equal(values[0].Tensor.Sizes, []int{1, 3, 4, 9}) {
		t.Errorf("got %v, %v", values, err)
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{"[[1,2],[3,4]]", `{"a":[1]}`, "[true]", "[[],[[]]]", "1e5", "null", `"x"`} {
		f.Add(text, byte(tensor.Float32))
	}
	f.Fuzz(func(t *testing.T, text string, d byte) {
		slot := slotOf(2, 2)
		if slot.DType = tensor.DType(d); !jsonTypes[slot.DType] {
			return
		}
		r := Resolver{Limit: 1 << 16}
		_, _, _ = jsonMembers([]byte(text))
		v, err := r.jsonValue([]byte(text), slot)
		if err != nil {
			return
		}
		n, ok := tensor.Product(v.Tensor.Sizes)
		if !ok || n*slot.DType.Size() != len(v.Tensor.Data) {
			t.Fatalf("%d bytes for %v", len(v.Tensor.Data), v.Tensor.Sizes)
		}
	})
}
