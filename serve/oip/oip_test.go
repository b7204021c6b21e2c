package oip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var limits = Limits{Header: 1 << 12, Body: 1 << 14, Tensors: 1 << 12, Inputs: 4}

// le returns the little-endian bytes of values.
func le(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.WriteString(s)
		} else if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, json string
		binary     []byte
		want       Request
	}{
		{"every type", `{"id":"7","inputs":[{"name":"a","shape":[2],"datatype":"FP32","data":[0.1,-1e3]},{"name":"b","shape":[1],"datatype":"INT8","data":[-128]},
			{"name":"c","shape":[2],"datatype":"BOOL","data":[true,0]},{"name":"d","shape":[1],"datatype":"UINT64","data":[18446744073709551615]}]}`, nil,
			Request{ID: "7", Inputs: []Tensor{{Name: "a", Datatype: "FP32", Shape: []int{2}, Data: le([]float32{0.1, -1000})},
				{Name: "b", Datatype: "INT8", Shape: []int{1}, Data: le(int8(-128))}, {Name: "c", Datatype: "BOOL", Shape: []int{2}, Data: []byte{1, 0}},
				{Name: "d", Datatype: "UINT64", Shape: []int{1}, Data: le(uint64(math.MaxUint64))}}}},
		{"nested", `{"inputs":[{"name":"a","shape":[2,1,2],"datatype":"INT16","data":[[[1,2]],[[3,4]]]}]}`, nil,
			Request{Inputs: []Tensor{{Name: "a", Datatype: "INT16", Shape: []int{2, 1, 2}, Data: le([]int16{1, 2, 3, 4})}}}},
		{"flat, and data before what it is", `{"inputs":[{"data":[1,2,3,4],"name":"a","datatype":"FP64","shape":[2,2]}]}`, nil,
			Request{Inputs: []Tensor{{Name: "a", Datatype: "FP64", Shape: []int{2, 2}, Data: le([]float64{1, 2, 3, 4})}}}},
		{"a scalar, and nothing", `{"inputs":[{"name":"a","shape":[],"datatype":"INT32","data":[5]},{"name":"b","shape":[0,3],"datatype":"FP32","data":[]}]}`, nil,
			Request{Inputs: []Tensor{{Name: "a", Datatype: "INT32", Shape: []int{}, Data: le(int32(5))}, {Name: "b", Datatype: "FP32", Shape: []int{0, 3}, Data: []byte{}}}}},
		{"strings", `{"inputs":[{"name":"a","shape":[2],"datatype":"BYTES","data":["x","\u00e9"]}]}`, nil,
			Request{Inputs: []Tensor{{Name: "a", Datatype: "BYTES", Shape: []int{2}, Texts: [][]byte{[]byte("x"), []byte("é")}}}}},
		{"binary and JSON", `{"inputs":[{"name":"a","shape":[2],"datatype":"FP16","parameters":{"binary_data_size":4}},{"name":"b","shape":[1],"datatype":"UINT8","data":[9]},
			{"name":"c","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":11}}]} `, le(uint16(1), uint16(2), uint32(3), "abc", uint32(0)),
			Request{Inputs: []Tensor{{Name: "a", Datatype: "FP16", Shape: []int{2}, Data: le(uint16(1), uint16(2)), Binary: true}, {Name: "b", Datatype: "UINT8", Shape: []int{1}, Data: []byte{9}},
				{Name: "c", Datatype: "BYTES", Shape: []int{2}, Texts: [][]byte{[]byte("abc"), {}}, Binary: true}}}},
		{"outputs, parameters, and unknown members", `{"x":[{}],"parameters":{"sequence_id":5,"sequence_start":true,"p":0.5,"n":null,"q":"s"},"outputs":[{"name":"o","parameters":{"binary_data":true}}],"inputs":[]}`, nil,
			Request{Parameters: Parameters{"sequence_id": int64(5), "sequence_start": true, "p": 0.5, "n": nil, "q": "s"}, Outputs: []Output{{Name: "o", Parameters: Parameters{"binary_data": true}}}}},
	} {
		length := ""
		if c.binary != nil {
			length = strconv.Itoa(len(c.json))
		}
		body := append([]byte(c.json), c.binary...)
		for _, r := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body))} {
			got, err := Read(r, length, limits)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			} else if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("%s: want -, got +\n%s", c.name, diff)
			}
		}
	}
}

// TestCache checks that requests with the same JSON part get their own data, and that a cache does
// not change what is read or refused.
func TestCache(t *testing.T) {
	shape := func(n int) string {
		return fmt.Sprintf(`{"id":"%d","parameters":{"p":%[1]d},"inputs":[{"name":"a","shape":[%[1]d],"datatype":"UINT8","parameters":{"binary_data_size":%[1]d}}]}`, n)
	}
	mixed := `{"inputs":[{"name":"a","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},{"name":"b","shape":[1],"datatype":"INT8","data":[7]}]}`
	with := limits
	with.Cache = new(Cache)
	var kept []*Request
	for i, c := range []struct{ json, data string }{
		{shape(2), "ab"}, {shape(2), "cd"}, {shape(2), "e"}, {shape(2), "fgh"}, {shape(3), "ijk"}, {shape(2), "lm"},
		{mixed, "no"}, {mixed, "pq"}, {shape(2)[:20], ""}, {shape(2), "rs"},
	} {
		body := c.json + c.data
		want, wantErr := Read(strings.NewReader(body), strconv.Itoa(len(c.json)), limits)
		got, err := Read(strings.NewReader(body), strconv.Itoa(len(c.json)), with)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%d: got %v, want %v", i, err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%d: want -, got +\n%s", i, diff)
		}
		if err == nil {
			kept = append(kept, got)
		}
	}
	if string(kept[0].Inputs[0].Data) != "ab" {
		t.Errorf("the first request has got the data %q", kept[0].Inputs[0].Data)
	}
}

func TestReadRefuses(t *testing.T) {
	input := func(members string) string { return `{"inputs":[{"name":"a",` + members + `}]}` }
	for _, c := range []struct {
		name, body, length string
		class              error
		text               string
	}{
		{"nothing", "", "", ErrInvalid, "JSON truncated"},
		{"no object", "[1]", "", ErrInvalid, "an array, want an object"},
		{"another kind", input(`"shape":[1],"datatype":"FP32","data":{}`), "", ErrInvalid, "inputs[0].data: an object, want an array"},
		{"another kind of parameters", `{"parameters":[]}`, "", ErrInvalid, "parameters: an array, want an object"},
		{"a number for the id", `{"id":5}`, "", ErrInvalid, "id: a number, want a string"},
		{"no JSON", "NaN", "", ErrInvalid, "invalid JSON at byte 0: invalid character"},
		{"cut", `{"inputs":[{"name":"a"`, "", ErrInvalid, "JSON truncated"},
		{"bad token", `{"inputs":[nope]}`, "", ErrInvalid, "inputs[0]: "},
		{"two objects", `{}{}`, "", ErrInvalid, "extra bytes after the JSON"},
		{"a name twice", `{"id":"1","id":"2"}`, "", ErrInvalid, "duplicate"},
		{"bad UTF-8", "{\"id\":\"\xff\"}", "", ErrInvalid, "UTF-8"},
		{"deep", `{"x":` + strings.Repeat("[", 15000), "", ErrInvalid, "depth"},
		{"long text", `{"id":"` + strings.Repeat("x", 5000) + `"}`, "", ErrTooLarge, "id: a string of 5000 bytes"},
		{"long body", `{"x":"` + strings.Repeat("x", 20000) + `"}`, "", ErrTooLarge, "body too long: more than 16384 bytes"},
		{"many inputs", `{"inputs":[` + strings.Repeat(`{"name":"a","shape":[],"datatype":"INT8","data":[1]},`, 5) + `{}]}`, "", ErrTooLarge, "more than 4"},
		{"no name", `{"inputs":[{"shape":[1],"datatype":"FP32","data":[1]}]}`, "", ErrInvalid, "no name"},
		{"no data", input(`"shape":[1],"datatype":"FP32"`), "", ErrInvalid, "no data"},
		{"no type", input(`"shape":[1],"data":[1]`), "", ErrInvalid, "no datatype"},
		{"unknown type", input(`"shape":[1],"datatype":"FP8","data":[1]`), "", ErrInvalid, `unknown datatype "FP8"`},
		{"negative size", input(`"shape":[-1],"datatype":"FP32","data":[1]`), "", ErrInvalid, "inputs[0].shape: -1"},
		{"size that is no integer", input(`"shape":[1.5],"datatype":"FP32","data":[1]`), "", ErrInvalid, "1.5"},
		{"size beyond 64 bits", input(`"shape":[99999999999999999999],"datatype":"FP32","data":[1]`), "", ErrInvalid, "shape"},
		{"product beyond 64 bits", input(`"shape":[4294967296,4294967296,4294967296],"datatype":"FP32","data":[1]`), "", ErrInvalid, "too many elements"},
		{"zero hides a product", input(`"shape":[0,4294967296,4294967296],"datatype":"FP32","data":[]`), "", ErrInvalid, "too many elements"},
		{"large tensor", input(`"shape":[1025],"datatype":"FP32","data":[1]`), "", ErrTooLarge, "4100 bytes"},
		{"high rank", input(`"shape":[` + strings.Repeat("1,", 16) + `1],"datatype":"FP32","data":[1]`), "", ErrInvalid, "16 dimensions"},
		{"few elements", input(`"shape":[2],"datatype":"FP32","data":[1]`), "", ErrInvalid, "1 elements, want 2"},
		{"many elements", input(`"shape":[2],"datatype":"FP32","data":[1,2,3]`), "", ErrInvalid, "more than the 2 elements"},
		{"few rows", input(`"shape":[2,1],"datatype":"FP32","data":[[1]]`), "", ErrInvalid, "1 arrays"},
		{"many rows", input(`"shape":[1,1],"datatype":"FP32","data":[[1],[2]]`), "", ErrInvalid, "more than 1 arrays"},
		{"flat inside", input(`"shape":[2,1],"datatype":"FP32","data":[[1],2]`), "", ErrInvalid, "want an array"},
		{"short row", input(`"shape":[2,2],"datatype":"FP32","data":[[1,2],[3]]`), "", ErrInvalid, "1 elements, want 2"},
		{"not a number", input(`"shape":[1],"datatype":"FP32","data":["1"]`), "", ErrInvalid, "element 0"},
		{"null", input(`"shape":[1],"datatype":"FP32","data":[null]`), "", ErrInvalid, "element 0"},
		{"float beyond its type", input(`"shape":[1],"datatype":"FP32","data":[1e39]`), "", ErrInvalid, "element 0"},
		{"integer beyond its type", input(`"shape":[1],"datatype":"INT8","data":[128]`), "", ErrInvalid, "element 0"},
		{"fraction", input(`"shape":[1],"datatype":"INT8","data":[1.5]`), "", ErrInvalid, "element 0"},
		{"half in JSON", input(`"shape":[1],"datatype":"FP16","data":[1]`), "", ErrInvalid, "no JSON form"},
		{"a number among strings", input(`"shape":[1],"datatype":"BYTES","data":[1]`), "", ErrInvalid, "not a string"},
		{"shared memory", input(`"shape":[1],"datatype":"FP32","parameters":{"shared_memory_region":"r"}`), "", ErrInvalid, "shared memory"},
		{"binary without its header", input(`"shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}`), "", ErrInvalid, "without the header"},
		{"parameter of another kind", input(`"shape":[1],"datatype":"FP32","parameters":{"binary_data_size":[4]}`), "", ErrInvalid,
			"binary_data_size: an array"},
		{"shape of null", input(`"shape":null,"datatype":"FP32","data":[1]`), "", ErrInvalid, "no shape"},
		{"a null for an input", `{"inputs":[null]}`, "", ErrInvalid, "inputs[0]: null"},
		{"header length", `{}`, "-1", ErrInvalid, HeaderLength},
		{"no header", `{}`, "0", ErrInvalid, HeaderLength},
		{"huge header", `{}`, "4097", ErrTooLarge, HeaderLength},
		{"header that cuts", `{"inputs":[]}`, "5", ErrInvalid, "JSON truncated"},
	} {
		_, err := Read(strings.NewReader(c.body), c.length, limits)
		if _, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.class, c.text)
		}
	}
}

// TestBinarySizes sends wrong sizes of binary data.
func TestBinarySizes(t *testing.T) {
	for _, c := range []struct {
		name, members string
		data          []byte
		class         error
		text          string
	}{
		{"less than the shape", `"shape":[2],"datatype":"FP32","parameters":{"binary_data_size":4}`, make([]byte, 4), ErrInvalid, "4 bytes of FP32 [2], want 8"},
		{"more than the shape", `"shape":[2],"datatype":"FP32","parameters":{"binary_data_size":12}`, make([]byte, 12), ErrInvalid, "want 8"},
		{"negative", `"shape":[2],"datatype":"FP32","parameters":{"binary_data_size":-8}`, make([]byte, 8), ErrInvalid, "binary_data_size"},
		{"beyond the limit", `"shape":[100000000],"datatype":"FP32","parameters":{"binary_data_size":400000000}`, nil, ErrTooLarge, "bytes of tensors"},
		{"a fraction", `"shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8.5}`, make([]byte, 8), ErrInvalid, "binary_data_size"},
		{"cut body", `"shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}`, make([]byte, 5), ErrInvalid, "5 bytes of binary data, want 8"},
		{"long body", `"shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}`, make([]byte, 9), ErrInvalid, "extra bytes after the last tensor"},
		{"data as well", `"shape":[1],"datatype":"FP32","data":[1],"parameters":{"binary_data_size":4}`, make([]byte, 4), ErrInvalid, "one of them"},
		{"string beyond", `"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}`, le(uint32(3), "ab"), ErrInvalid, "string 0"},
		{"length of 4 GiB", `"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}`, le(uint32(math.MaxUint32), "ab"), ErrInvalid, "string 0"},
		{"strings left", `"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":9}`, le(uint32(1), "a", uint32(0)), ErrInvalid, "4 extra bytes"},
	} {
		header := `{"inputs":[{"name":"a",` + c.members + `}]}`
		_, err := Read(io.MultiReader(strings.NewReader(header), bytes.NewReader(c.data)), strconv.Itoa(len(header)), limits)
		if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.class, c.text)
		}
	}
}

// TestReadFails distinguishes a failed connection from an invalid request.
func TestReadFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := Read(io.MultiReader(strings.NewReader(`{"inputs":[`), iotest.ErrReader(broken)), "", limits)
	if !errors.Is(err, ErrRead) || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestResponse(t *testing.T) {
	r := Response{Model: "m", Version: "forward", ID: "1", Outputs: []Tensor{
		{Name: "a", Datatype: "FP32", Shape: []int{2}, Data: le([]float32{0.1, float32(math.Inf(1))}), Binary: true},
		{Name: "b", Datatype: "INT64", Shape: []int{1}, Data: le(int64(math.MinInt64))},
		{Name: "c", Datatype: "BYTES", Shape: []int{1}, Texts: [][]byte{[]byte("\"x\n")}},
	}}
	body, n, err := r.Append([]byte("kept "))
	if err != nil {
		t.Fatal(err)
	}
	body, _ = bytes.CutPrefix(body, []byte("kept "))
	const json = `{"model_name":"m","model_version":"forward","id":"1","outputs":[` +
		`{"name":"a","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},` +
		`{"name":"b","datatype":"INT64","shape":[1],"data":[-9223372036854775808]},{"name":"c","datatype":"BYTES","shape":[1],"data":["\"x\n"]}]}`
	if string(body[:n]) != json || !bytes.Equal(body[n:], r.Outputs[0].Data) {
		t.Errorf("got %q", body)
	}
	back, err := ReadResponse(bytes.NewReader(body), strconv.Itoa(n), limits)
	if diff := cmp.Diff(&r, back); err != nil || diff != "" {
		t.Errorf("%v; want -, got +\n%s", err, diff)
	}
	r.Outputs[0].Binary = false
	if _, _, err := r.Append(nil); !errors.Is(err, ErrNoJSON) || !strings.Contains(err.Error(), "element 1") {
		t.Errorf("infinity in JSON: %v", err)
	}
}

// TestMaxBytes checks the bound of answers with the longest numbers of each type.
func TestMaxBytes(t *testing.T) {
	longest := map[Datatype][]byte{"FP32": le(math.Float32frombits(0x80ffffff), float32(-1.17549435e-38), float32(-3.4028235e38)),
		"FP64": le(-2.2250738585072014e-308, -1.7976931348623157e308, 5e-324), "INT64": le(int64(math.MinInt64)),
		"UINT64": le(uint64(math.MaxUint64)),
		"INT32":  le(int32(math.MinInt32)), "INT16": le(int16(math.MinInt16)), "INT8": {0x80}, "UINT8": {255}, "UINT16": {255, 255},
		"UINT32": {255, 255, 255, 255}, "BOOL": {0}}
	for d, data := range longest {
		x := Tensor{Datatype: d, Data: data, Shape: []int{len(data) / formatOf(d).dtype.Size()}}
		text, err := x.append(nil)
		if from := bytes.LastIndexByte(text, '['); err != nil || int64(len(text)-from-2) > x.MaxBytes() {
			t.Errorf("%s: %s has more than %d bytes (%v)", d, text[from:], x.MaxBytes(), err)
		}
	}
	x := Tensor{Datatype: Bytes, Texts: [][]byte{[]byte("\x00\x01<>&"), nil}, Shape: []int{2}}
	if text, err := x.append(nil); err != nil || int64(len(text)-bytes.LastIndexByte(text, '[')-2) > x.MaxBytes() {
		t.Errorf("%s has more than %d bytes (%v)", text, x.MaxBytes(), err)
	}
}

// FuzzRead checks for panics, memory within the limits, and that an encoded request decodes to the
// same request.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":"7","inputs":[{"name":"a","shape":[2],"datatype":"FP32","data":[0.1,-1e3]}],"outputs":[{"name":"o"}]}`), 0)
	f.Add([]byte(`{"inputs":[{"data":[[1],[2]],"name":"a","datatype":"INT8","shape":[2,1]}]}`), 0)
	f.Add([]byte(`{"inputs":[{"name":"a","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":9}}]}`+"\x01\x00\x00\x00x\x00\x00\x00\x00"), 91)
	f.Add([]byte(`{"parameters":{"sequence_id":18446744073709551615,"x":1.5,"y":null,"z":-1e999}}`), 0)
	f.Add([]byte(`{"outputs":[{"name":"o","parameters":{"binary_data":true}},{"name":"p","parameters":{"n":3}},{"name":"q"}]}`), 0)
	f.Fuzz(func(t *testing.T, body []byte, header int) {
		length := ""
		if header > 0 {
			length = strconv.Itoa(header)
		}
		r, err := Read(bytes.NewReader(body), length, limits)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		size := 0
		for i := range r.Inputs {
			size += len(r.Inputs[i].Data)
			r.Inputs[i].Binary = r.Inputs[i].Binary || r.Inputs[i].Datatype == "FP16" || r.Inputs[i].Datatype == "BF16"
		}
		if int64(size) > limits.Tensors || len(r.Inputs) > limits.Inputs {
			t.Fatalf("%d bytes in %d inputs", size, len(r.Inputs))
		}
		again(t, r)
	})
}

func dropNested(p Parameters) {
	maps.DeleteFunc(p, func(_ string, v any) bool { _, nested := v.(nested); return nested })
}

// TestNulls checks that null in any optional member means that it is absent, for every member of a request, and that
// parameters that are no scalars are ignored where they are unknown.
func TestNulls(t *testing.T) {
	const base = `{"inputs":[{"name":"a","shape":[1],"datatype":"INT8","data":[7]}],"outputs":[{"name":"o"}]}`
	want, err := Read(strings.NewReader(base), "", limits)
	if err != nil {
		t.Fatal(err)
	}
	members := []string{`"id":null`, `"parameters":null`, `"parameters":{}`, `"unknown":null`, `"parameters":{"x":null}`,
		`"parameters":{"x":[1,{}],"y":{"z":[]}}`}
	for i := range 1 << len(members) {
		for at, place := range []string{`{"inputs"`, `{"name":"a"`, `{"name":"o"`} {
			var list []string
			for bit, m := range members {
				if i>>bit&1 == 1 && (at == 0 || m != `"id":null`) && !(strings.Contains(m, "parameters") && strings.Contains(strings.Join(list, ""),
					"parameters")) {
					list = append(list, m)
				}
			}
			if len(list) == 0 {
				continue
			}
			text := strings.Replace(base, place, "{"+strings.Join(list, ",")+","+place[1:], 1)
			got, err := Read(strings.NewReader(text), "", limits)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			got.Parameters, got.Outputs[0].Parameters = nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: want -, got +\n%s", text, diff)
			}
		}
	}
	binary := `{"id":null,"inputs":[{"name":"a","shape":[1],"datatype":"INT8","data":null,"parameters":{"binary_data_size":1}}],"outputs":null}`
	if r, err := Read(strings.NewReader(binary+"x"), strconv.Itoa(len(binary)), limits); err != nil || string(r.Inputs[0].Data) != "x" {
		t.Errorf("%s: %v", binary, err)
	}
}

func again(t *testing.T, r *Request) {
	dropNested(r.Parameters)
	for _, o := range r.Outputs {
		dropNested(o.Parameters)
	}
	body, n, err := r.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	length := ""
	if n > 0 {
		length = strconv.Itoa(n)
	}
	back, err := Read(bytes.NewReader(body), length, Limits{Header: 1 << 24, Body: 1 << 26, Tensors: limits.Tensors, Inputs: 1 << 10})
	if err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	same := func(a, b Tensor) bool {
		return a.Name == b.Name && bytes.Equal(a.Data, b.Data) && slices.Equal(a.Shape, b.Shape)
	}
	wanted := func(a, b Output) bool { return a.Name == b.Name && maps.Equal(a.Parameters, b.Parameters) }
	if !slices.EqualFunc(r.Inputs, back.Inputs, same) || !maps.Equal(r.Parameters, back.Parameters) || back.ID != r.ID ||
		!slices.EqualFunc(r.Outputs, back.Outputs, wanted) {
		t.Fatalf("got %+v, want %+v", back, r)
	}
}

func BenchmarkReadBinary(b *testing.B) {
	data := make([]byte, 4*3*224*224)
	body, n, err := (&Request{Inputs: []Tensor{{Name: "x", Datatype: "FP32", Shape: []int{1, 3, 224, 224}, Data: data, Binary: true}}}).Append(nil)
	benchmarkRead(b, body, strconv.Itoa(n), err)
}

func BenchmarkReadJSON(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, 3*224*224)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	body, _, err := (&Request{Inputs: []Tensor{{Name: "x", Datatype: "FP32", Shape: []int{1, 3, 224, 224}, Data: le(values)}}}).Append(nil)
	benchmarkRead(b, body, "", err)
}

func benchmarkRead(b *testing.B, body []byte, length string, err error) {
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := Read(bytes.NewReader(body), length, Limits{Header: 1 << 12, Body: 1 << 24, Tensors: 1 << 24, Inputs: 4}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestGrids reads arrays that match a shape, flat or nested, and others, whose errors name what does not match.
func TestGrids(t *testing.T) {
	for _, c := range []struct {
		shape, data string
		want        string // of the error, empty for none
	}{
		{"[2,2]", "[1,2,3,4]", ""}, {"[2,2]", "[[1,2],[3,4]]", ""}, {"[2,2]", " [ [ 1 ,\n2 ] , [ 3,\t4 ] ] ", ""}, {"[2,2,1]", "[[[1],[2]],[[3],[4]]]", ""},
		{"[4]", "[1,2e0,0.3e1,4.0]", ""}, {"[]", "[1]", ""}, {"[0]", "[]", ""}, {"[0,2]", "[]", ""}, {"[2,0]", "[[],[]]", ""}, {"[1,2,2]", "[[[1,2],[3,4]]]", ""},
		{"[4]", "[[1,2],[3,4]]", "element 0"}, {"[2,2]", "[[1,2,3],[4]]", "more than the 2"}, {"[2,2]", "[[1,2]]", "1 arrays in a dimension of 2"},
		{"[2,2]", "[[1,2],[3,4],[5,6]]", "more than 2 arrays"}, {"[2,2]", "[1,2,3]", "3 elements, want 4"}, {"[2,2]", "[1,2,3,4,5]", "more than the 4"},
		{"[2,2]", "[[1,2],3,4]", "want an array"}, {"[2,2]", `[1,2,3,"4"]`, "element 3"}, {"[2,2]", "[1,2,null,4]", "element 2"}, {"[2]", "7", "want an array"},
		{"[2]", "{}", "want an array"}, {"[2,2]", "[[[1],[2]],[3,4]]", "element 0"}, {"[1]", "[1e39]", "element 0"}, {"[1]", "[true]", "element 0"},
	} {
		for _, members := range []string{`"shape":` + c.shape + `,"datatype":"FP32","data":` + c.data, `"data":` + c.data + `,"datatype":"FP32","shape":` + c.shape} {
			r, err := Read(strings.NewReader(`{"inputs":[{"name":"x",`+members+`}]}`), "", limits)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %q", members, err, c.want)
				}
				continue
			}
			var want []float32
			for i := range len(strings.FieldsFunc(c.data, func(r rune) bool { return strings.ContainsRune("[], \n\t", r) })) {
				want = append(want, float32(i+1))
			}
			if err != nil || !bytes.Equal(r.Inputs[0].Data, le(want)) {
				t.Errorf("%s: %v, %v", members, r, err)
			}
		}
	}
}
