package grpc

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/grpc/inference"
	"github.com/etrun-go/etrun/serve/oip"
)

var limits = oip.Limits{Header: 1 << 16, Body: 1 << 20, Tensors: 1 << 16, Inputs: 8}

// typed is a request with one input of four elements in a typed field.
func typed(datatype string, c *contents) *inference.ModelInferRequest {
	return &inference.ModelInferRequest{ModelName: "m", Inputs: []*inference.ModelInferRequest_InferInputTensor{
		{Name: "x", Datatype: datatype, Shape: []int64{2, 2}, Contents: c}}}
}

func encode(t testing.TB, m *inference.ModelInferRequest) *request {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &request{data}
}

// typedCases are the bounds of every datatype, and a value out of them.
var typedCases = map[string]struct {
	in, out *contents
	want    []byte
}{
	"BOOL":   {&contents{BoolContents: []bool{true, false, true, true}}, nil, []byte{1, 0, 1, 1}},
	"INT8":   {&contents{IntContents: []int32{-128, 127, 0, -1}}, &contents{IntContents: []int32{128, 0, 0, 0}}, tensor.BytesOf([]int8{-128, 127, 0, -1})},
	"INT16":  {&contents{IntContents: []int32{math.MinInt16, math.MaxInt16, 0, -1}}, &contents{IntContents: []int32{0, 0, 0, math.MinInt16 - 1}}, tensor.BytesOf([]int16{math.MinInt16, math.MaxInt16, 0, -1})},
	"INT32":  {&contents{IntContents: []int32{math.MinInt32, math.MaxInt32, 0, -1}}, &contents{Int64Contents: []int64{1, 2, 3, 4}}, tensor.BytesOf([]int32{math.MinInt32, math.MaxInt32, 0, -1})},
	"INT64":  {&contents{Int64Contents: []int64{math.MinInt64, math.MaxInt64, 0, -1}}, &contents{Int64Contents: []int64{1, 2, 3}}, tensor.BytesOf([]int64{math.MinInt64, math.MaxInt64, 0, -1})},
	"UINT8":  {&contents{UintContents: []uint32{0, 255, 1, 2}}, &contents{UintContents: []uint32{256, 0, 0, 0}}, []byte{0, 255, 1, 2}},
	"UINT16": {&contents{UintContents: []uint32{0, math.MaxUint16, 1, 2}}, &contents{UintContents: []uint32{0, 0, 1 << 16, 0}}, tensor.BytesOf([]uint16{0, math.MaxUint16, 1, 2})},
	"UINT32": {&contents{UintContents: []uint32{0, math.MaxUint32, 1, 2}}, &contents{Uint64Contents: []uint64{1, 2, 3, 4}}, tensor.BytesOf([]uint32{0, math.MaxUint32, 1, 2})},
	"UINT64": {&contents{Uint64Contents: []uint64{0, math.MaxUint64, 1, 2}}, &contents{Uint64Contents: make([]uint64, 5)}, tensor.BytesOf([]uint64{0, math.MaxUint64, 1, 2})},
	"FP32":   {&contents{Fp32Contents: []float32{0, -1.5, math.MaxFloat32, 2}}, &contents{Fp32Contents: make([]float32, 3)}, tensor.BytesOf([]float32{0, -1.5, math.MaxFloat32, 2})},
	"FP64":   {&contents{Fp64Contents: []float64{0, -1.5, math.MaxFloat64, 2}}, &contents{Fp32Contents: make([]float32, 4)}, tensor.BytesOf([]float64{0, -1.5, math.MaxFloat64, 2})},
}

// TestTypedContents reads the elements of every datatype from its field.
func TestTypedContents(t *testing.T) {
	for datatype, c := range typedCases {
		r, err := encode(t, typed(datatype, c.in)).read(limits)
		if err != nil || !bytes.Equal(r.Inputs[0].Data, c.want) || !slices.Equal(r.Inputs[0].Shape, []int{2, 2}) {
			t.Errorf("%s: %v, %v, want %v", datatype, r, err, c.want)
		}
		if c.out == nil {
			continue
		}
		if _, err := encode(t, typed(datatype, c.out)).read(limits); err == nil {
			t.Errorf("%s: %v accepted", datatype, c.out)
		}
	}
	words := [][]byte{[]byte("a"), {}, []byte("\x00"), []byte("long")}
	r, err := encode(t, typed("BYTES", &contents{BytesContents: words})).read(limits)
	if err != nil || !slices.EqualFunc(r.Inputs[0].Texts, words, bytes.Equal) {
		t.Errorf("BYTES: %v, %v", r, err)
	}
	if r, err := encode(t, typed("BYTES", &contents{BytesContents: words[:3]})).read(limits); err == nil {
		t.Errorf("three strings: %v", r)
	}
}

// TestUnpacked reads elements that are fields of their own, not a packed list.
func TestUnpacked(t *testing.T) {
	element := []byte{2 << 3, 7}
	input := slices.Concat([]byte{1<<3 | 2, 1, 'x', 2<<3 | 2, 4, 'I', 'N', 'T', '8', 3 << 3, 2, 3 << 3, 2, 5<<3 | 2, 8}, slices.Repeat(element, 4))
	r, err := (&request{append([]byte{1<<3 | 2, 1, 'm', 5<<3 | 2, byte(len(input))}, input...)}).read(limits)
	if err != nil || !bytes.Equal(r.Inputs[0].Data, []byte{7, 7, 7, 7}) {
		t.Fatal(r, err)
	}
}

// fullRequest is a request with all kinds of fields.
func fullRequest() *inference.ModelInferRequest {
	m := typed("FP32", nil)
	m.ModelVersion, m.Id = "forward", "id"
	text := &inference.InferParameter{ParameterChoice: &inference.InferParameter_StringParam{StringParam: "s"}}
	number := &inference.InferParameter{ParameterChoice: &inference.InferParameter_Int64Param{Int64Param: -5}}
	wide := &inference.InferParameter{ParameterChoice: &inference.InferParameter_Uint64Param{Uint64Param: math.MaxUint64}}
	flag := &inference.InferParameter{ParameterChoice: &inference.InferParameter_BoolParam{BoolParam: true}}
	real := &inference.InferParameter{ParameterChoice: &inference.InferParameter_DoubleParam{DoubleParam: 0.5}}
	m.Parameters = map[string]*inference.InferParameter{"text": text, "number": number, "wide": wide, "flag": flag, "real": real, "none": {}}
	m.Inputs = append(m.Inputs, &inference.ModelInferRequest_InferInputTensor{Name: "y", Datatype: "BYTES", Shape: []int64{1},
		Parameters: map[string]*inference.InferParameter{"flag": flag}})
	m.Outputs = []*inference.ModelInferRequest_InferRequestedOutputTensor{{Name: "z", Parameters: map[string]*inference.InferParameter{"number": number}}}
	m.RawInputContents = [][]byte{make([]byte, 16), {2, 0, 0, 0, 'a', 'b'}}
	return m
}

// TestFullRequest checks every field of a request.
func TestFullRequest(t *testing.T) {
	r := encode(t, fullRequest())
	got, err := r.read(limits)
	if err != nil {
		t.Fatal(err)
	}
	model, method, err := r.target()
	want := oip.Parameters{"text": "s", "number": int64(-5), "wide": uint64(math.MaxUint64), "flag": true, "real": 0.5, "none": nil}
	for name, v := range want {
		if got.Parameters[name] != v {
			t.Errorf("parameter %s: %v, want %v", name, got.Parameters[name], v)
		}
	}
	if err != nil || model != "m" || method != "forward" || r.id() != "id" || got.ID != "id" || len(got.Parameters) != len(want) ||
		got.Outputs[0].Name != "z" || got.Outputs[0].Parameters["number"] != int64(-5) || string(got.Inputs[1].Texts[0]) != "ab" {
		t.Error(model, method, err, got)
	}
}

// checkRead reads a request, and compares it with what the generated code reads: what is accepted, that accepts too.
func checkRead(t *testing.T, data []byte) {
	t.Helper()
	r := &request{data}
	if _, _, err := r.target(); err != nil {
		return
	}
	got, err := r.read(limits)
	if err != nil {
		return
	}
	var want inference.ModelInferRequest
	if err := proto.Unmarshal(data, &want); err != nil {
		t.Fatalf("%x is accepted; the generated code: %v", data, err)
	}
	if got.ID != want.Id || len(got.Inputs) != len(want.Inputs) || len(got.Outputs) != len(want.Outputs) || len(got.Parameters) != len(want.Parameters) {
		t.Fatalf("%x: %v, want %v", data, got, &want)
	}
	for i := range got.Inputs {
		g, w := &got.Inputs[i], want.Inputs[i]
		n, _ := tensor.Product(g.Shape)
		d, _ := g.Datatype.DType()
		if g.Name != w.Name || string(g.Datatype) != w.Datatype || len(g.Shape) != len(w.Shape) ||
			g.Datatype != oip.Bytes && len(g.Data) != n*d.Size() || g.Datatype == oip.Bytes && len(g.Texts) != n {
			t.Fatalf("%x: input %v, want %v", data, g, w)
		}
		if len(want.RawInputContents) > 0 && g.Datatype != oip.Bytes && !bytes.Equal(g.Data, want.RawInputContents[i]) {
			t.Fatalf("%x: other elements", data)
		}
	}
}

// seeds are valid requests.
func seeds(t testing.TB) (list [][]byte) {
	list = append(list, encode(t, fullRequest()).data)
	for datatype, c := range typedCases {
		list = append(list, encode(t, typed(datatype, c.in)).data)
	}
	return append(list, encode(t, typed("BYTES", &contents{BytesContents: [][]byte{{1}, {}, {2, 3}, {4}}})).data)
}

// TestMutations reads valid requests with a few bytes changed, removed or repeated.
func TestMutations(t *testing.T) {
	random, list := rand.New(rand.NewPCG(1, 2)), seeds(t)
	for i := range 20_000 {
		data := slices.Clone(list[i%len(list)])
		for range 1 + random.IntN(3) {
			at := random.IntN(len(data))
			switch random.IntN(4) {
			case 0:
				data[at] = byte(random.Uint32())
			case 1:
				data[at] ^= 1 << random.IntN(8)
			case 2:
				data = append(data[:at:at], data[min(at+1+random.IntN(4), len(data)):]...)
			default:
				data = slices.Insert(data, at, data[at:min(at+random.IntN(9), len(data))]...)
			}
			if len(data) == 0 {
				break
			}
		}
		checkRead(t, data)
	}
}

// TestManyFields checks that what a message claims is not allocated: messages of many small fields and elements.
func TestManyFields(t *testing.T) {
	const n = 1 << 18
	input := func(part ...byte) []byte { // an input with this part many times
		parts := bytes.Repeat(part, n/len(part))
		return append(protowire.AppendVarint([]byte{5<<3 | 2}, uint64(len(parts))), parts...)
	}
	elements := func(field byte, parts []byte) []byte { // an input with contents
		parts = protowire.AppendBytes([]byte{field<<3 | 2}, parts)
		parts = protowire.AppendBytes([]byte{5<<3 | 2}, parts)
		return protowire.AppendBytes([]byte{5<<3 | 2}, parts)
	}
	for name, data := range map[string][]byte{
		"inputs":                 bytes.Repeat([]byte{5<<3 | 2, 0}, n/2),
		"outputs":                bytes.Repeat([]byte{6<<3 | 2, 0}, n/2),
		"raw contents":           bytes.Repeat([]byte{7<<3 | 2, 0}, n/2),
		"parameters":             bytes.Repeat([]byte{4<<3 | 2, 0}, n/2),
		"parameters of an input": input(4<<3|2, 0),
		"sizes":                  input(3<<3, 1),
		"strings":                input(5<<3|2, 2, 8<<3|2, 0),
		"numbers one by one":     input(5<<3|2, 2, 3<<3, 1),
		"packed numbers":         elements(3, make([]byte, n)),
		"fields of no meaning":   bytes.Repeat(protowire.AppendTag(nil, 1<<20, protowire.BytesType), n/4),
	} {
		r := &request{data}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := r.read(limits)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Error(name, "accepted")
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 6*maxWeight { // a list that grows is copied
			t.Errorf("%s: %d bytes allocated for a message of %d", name, got, len(data))
		}
	}
}

// BenchmarkRead reads requests of a megabyte in each form.
func BenchmarkRead(b *testing.B) {
	large := limits
	large.Body, large.Tensors = 16<<20, 4<<20
	shape := []int64{1 << 18}
	raw := &inference.ModelInferRequest{Inputs: []*inference.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: shape}},
		RawInputContents: [][]byte{make([]byte, 1<<20)}}
	small := &inference.ModelInferRequest{ModelName: "m", Inputs: []*inference.ModelInferRequest_InferInputTensor{
		{Name: "x", Datatype: "FP32", Shape: []int64{64}}}, RawInputContents: [][]byte{make([]byte, 256)}}
	floats := typed("FP32", &inference.InferTensorContents{Fp32Contents: make([]float32, 1<<18)})
	numbers := typed("INT64", &inference.InferTensorContents{Int64Contents: slices.Repeat([]int64{300}, 1<<18)})
	words := typed("BYTES", &inference.InferTensorContents{BytesContents: slices.Repeat([][]byte{[]byte("word")}, 1<<14)})
	floats.Inputs[0].Shape, numbers.Inputs[0].Shape, words.Inputs[0].Shape = shape, shape, []int64{1 << 14}
	for _, c := range []struct {
		name string
		m    *inference.ModelInferRequest
	}{{"small", small}, {"raw", raw}, {"floats", floats}, {"numbers", numbers}, {"strings", words}} {
		b.Run(c.name, func(b *testing.B) {
			data := encode(b, c.m).data
			for b.Loop() {
				r := request{data}
				_, _, _ = r.target() // one has no name
				if _, err := r.read(large); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzRequest compares requests with what the generated code reads.
func FuzzRequest(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(checkRead)
}
