package serve_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program returns a function that opens a file of testdata.
func program(path string, options ...etrun.Option) func(context.Context) (*etrun.Program, error) {
	return func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, etrun.File("../testdata/"+path), append(options, etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))...)
	}
}

// server returns a server with loaded models.
func server(t *testing.T, o serve.Options, models ...serve.Config) *serve.Server {
	t.Helper()
	s, err := serve.New(o, models...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.LoadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(s http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

var wideLimits = oip.Limits{Header: 1 << 20, Body: 1 << 26, Tensors: 1 << 26, Inputs: 64}

// infer sends tensors and reads the answer.
func infer(t *testing.T, s http.Handler, path string, inputs ...oip.Tensor) (*oip.Response, *httptest.ResponseRecorder) {
	t.Helper()
	body, n, err := (&oip.Request{ID: "1", Inputs: inputs}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := ask(s, "POST", path, string(body), headerLength(n)...)
	if w.Code != http.StatusOK {
		return nil, w
	}
	r, err := oip.ReadResponse(bytes.NewReader(w.Body.Bytes()), w.Header().Get(oip.HeaderLength), wideLimits)
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func headerLength(n int) []string {
	if n == 0 {
		return nil
	}
	return []string{oip.HeaderLength, strconv.Itoa(n)}
}

// floats returns a tensor of a request.
func floats(name string, shape []int, values ...float32) oip.Tensor {
	return oip.Tensor{Name: name, Datatype: "FP32", Shape: shape, Data: tensor.BytesOf(values)}
}

// library runs a method without a server and returns the bytes of its outputs.
func library(t *testing.T, open func(context.Context) (*etrun.Program, error), method string, inputs ...any) (outputs [][]byte) {
	t.Helper()
	prog, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	m, err := prog.Load(t.Context(), method)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := etrun.Run[float32](t.Context(), m, inputs...); err != nil {
		t.Fatal(err)
	}
	for i := range m.NumOutputs() {
		data, err := etrun.Get[float32](m, i)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, bytes.Clone(tensor.BytesOf(data)))
	}
	return outputs
}

func digits(t *testing.T) (images []float32) {
	t.Helper()
	b, err := os.ReadFile("../testdata/digits/images.f32.bin")
	if err != nil {
		t.Fatal(err)
	}
	data := tensor.AlignedBytes(len(b))
	copy(data, b)
	return tensor.View[float32](data)
}

// TestInfer compares outputs with those of the library, byte by byte, in every form of request and
// answer.
func TestInfer(t *testing.T) {
	open := program("digits/xnnpack.pte")
	s := server(t, serve.Options{}, serve.Config{Name: "digits", Open: open})
	images := digits(t)
	for i := range 10 {
		image := images[i*64:][:64]
		want := library(t, open, "", image)[0]
		for _, path := range []string{"/v2/models/digits/infer", "/v2/models/digits/versions/forward/infer"} {
			for _, binary := range []bool{false, true} {
				in := floats("input_0", []int{1, 1, 8, 8}, image...)
				in.Binary = binary
				got, w := infer(t, s, path, in)
				if got == nil {
					t.Fatalf("%d: %s", w.Code, w.Body)
				}
				if out := got.Outputs[0]; !bytes.Equal(out.Data, want) || out.Datatype != "FP32" || out.Name != "output_0" || got.ID != "1" || got.Version != "forward" {
					t.Errorf("image %d, %s, binary %v: got %+v, want %v", i, path, binary, got, tensor.View[float32](want))
				}
			}
		}
	}
}

// TestBinaryOutputs checks which outputs are sent as binary data.
func TestBinaryOutputs(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: program("pte/dynamic_pair.pte")})
	const inputs = `"inputs":[{"name":"input_0","shape":[1,3],"datatype":"FP32","data":[1,2,3]},{"name":"input_1","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]`
	for _, c := range []struct {
		more   string
		binary []bool
		names  string
	}{
		{``, []bool{false, false}, "output_0 output_1"},
		{`"parameters":{"binary_data_output":true},`, []bool{true, true}, "output_0 output_1"},
		{`"outputs":[{"name":"output_1","parameters":{"binary_data":true}},{"name":"output_0"}],`, []bool{true, false}, "output_1 output_0"},
		{`"parameters":{"binary_data_output":true},"outputs":[{"name":"output_1","parameters":{"binary_data":false}}],`, []bool{false}, "output_1"},
	} {
		w := ask(s, "POST", "/v2/models/m/infer", `{`+c.more+inputs+`}`)
		got, err := oip.ReadResponse(w.Body, w.Header().Get(oip.HeaderLength), wideLimits)
		if err != nil || len(got.Outputs) != len(c.binary) {
			t.Errorf("%s: %d, %v, %+v", c.more, w.Code, err, got)
			continue
		}
		var names []string
		for i, o := range got.Outputs {
			names = append(names, o.Name)
			if o.Binary != c.binary[i] || len(o.Data) == 0 {
				t.Errorf("%s: output %d is binary: %v, %d bytes", c.more, i, o.Binary, len(o.Data))
			}
		}
		if strings.Join(names, " ") != c.names {
			t.Errorf("%s: outputs %v, want %s", c.more, names, c.names)
		}
	}
}

// TestDynamicShapes checks that dynamic inputs accept all sizes within their bounds.
func TestDynamicShapes(t *testing.T) {
	open := program("pte/dynamic_pair.pte")
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: open})
	for _, rows := range []int{1, 2, 5} {
		values := make([]float32, rows*3)
		for i := range values {
			values[i] = float32(i) / 7
		}
		want := library(t, open, "", tensor.Of(values, rows, 3), tensor.Of(values, rows, 3))
		shape := []int{rows, 3}
		got, w := infer(t, s, "/v2/models/m/infer", floats("input_1", shape, values...), floats("input_0", shape, values...))
		if got == nil {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		for i := range want {
			if !bytes.Equal(got.Outputs[i].Data, want[i]) || got.Outputs[i].Shape[0] != rows {
				t.Errorf("%d rows, output %d: got %+v", rows, i, got.Outputs[i])
			}
		}
	}
}

// TestScalars checks that numbers and bools are tensors of one element, and optional.
func TestScalars(t *testing.T) {
	open := program("pte/scalar_inputs.pte")
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: open})
	values := make([]float32, 18)
	for i := range values {
		values[i] = float32(i)
	}
	want := library(t, open, "", values, 3, 0.5, true)
	x := floats("input_0", []int{3, 6}, values...)
	three := oip.Tensor{Name: "input_1", Datatype: "INT64", Shape: []int{1}, Data: tensor.BytesOf([]int64{3})}
	yes := oip.Tensor{Name: "input_3", Datatype: "BOOL", Shape: []int{}, Data: []byte{1}}
	for _, inputs := range [][]oip.Tensor{{x}, {x, three}, {three, x, yes}} {
		got, w := infer(t, s, "/v2/models/m/infer", inputs...)
		if got == nil || !bytes.Equal(got.Outputs[0].Data, want[0]) || !bytes.Equal(got.Outputs[1].Data, want[1]) {
			t.Errorf("%d inputs: %d, %+v", len(inputs), w.Code, got)
		}
	}
	three.Data = tensor.BytesOf([]int64{4})
	if _, w := infer(t, s, "/v2/models/m/infer", x, three); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "3") {
		t.Errorf("a number other than the program's: %d, %s", w.Code, w.Body)
	}
}

// TestMethods selects methods by version and by parameter.
func TestMethods(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: program("pte/two_methods.pte")})
	in := `"inputs":[{"name":"input_0","shape":[4],"datatype":"FP32","data":[1,2,3,4]}]}`
	for _, c := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/versions/push/infer", `{` + in, 200, `"model_version":"push"`},
		{"/infer", `{"parameters":{"method":"read"},` + in, 200, `"model_version":"read"`},
		{"/versions/read/infer", `{"parameters":{"method":"push"},` + in, 400, "push"},
		{"/infer", `{` + in, 404, `[\"push\" \"read\"]`},
		{"/versions/gone/infer", `{` + in, 404, "gone"},
	} {
		if w := ask(s, "POST", "/v2/models/m"+c.path, c.body); w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %.30s: got %d, %s, want %d with %s", c.path, c.body, w.Code, w.Body, c.code, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "digits", Open: program("digits/portable.pte")}, serve.Config{Name: "scalars", Open: program("pte/scalar_inputs.pte")})
	zeros := strings.TrimSuffix(strings.Repeat("0,", 64), ",")
	input := func(name, shape, datatype string) string {
		return `{"inputs":[{"name":"` + name + `","shape":` + shape + `,"datatype":"` + datatype + `","data":[` + zeros + `]}]}`
	}
	good := input("input_0", "[1,1,8,8]", "FP32")
	const three = `{"name":"input_1","shape":[1],"datatype":"INT64","data":[3]}`
	for _, c := range []struct {
		name, method, path, body string
		code                     int
		text                     string
		header                   []string
	}{
		{"unknown path", "GET", "/v1/models", "", 404, "/v1/models", nil},
		{"unknown model", "POST", "/v2/models/gone/infer", good, 404, "gone", nil},
		{"a path for a name", "POST", "/v2/models/..%2f..%2fetc%2fpasswd/infer", good, 404, "not found", nil},
		{"method", "GET", "/v2/models/digits/infer", "", 405, "POST", nil},
		{"not JSON", "POST", "/v2/models/digits/infer", "hello", 400, "JSON", nil},
		{"nothing", "POST", "/v2/models/digits/infer", "", 400, "JSON truncated", nil},
		{"no inputs", "POST", "/v2/models/digits/infer", "{}", 400, `input \"input_0\" is missing, want FP32 [1 1 8 8]`, nil},
		{"another input", "POST", "/v2/models/digits/infer", input("x", "[1,1,8,8]", "FP32"), 400, `has \"input_0\"`, nil},
		{"an input twice", "POST", "/v2/models/scalars/infer", `{"inputs":[` + three + `,` + three + `]}`, 400, "twice", nil},
		{"another shape", "POST", "/v2/models/digits/infer", input("input_0", "[1,64]", "FP32"), 400, "FP32 [1 64], want FP32 [1 1 8 8]", nil},
		{"fewer elements", "POST", "/v2/models/digits/infer", input("input_0", "[1,1,1,8]", "FP32"), 400, "more than", nil},
		{"another datatype", "POST", "/v2/models/digits/infer", input("input_0", "[1,1,8,8]", "INT32"), 400, "INT32", nil},
		{"strings", "POST", "/v2/models/digits/infer", `{"inputs":[{"name":"input_0","shape":[1],"datatype":"BYTES","data":["x"]}]}`, 400, `input \"input_0\": BYTES [1], want FP32 [1 1 8 8]; it takes no strings`, nil},
		{"strings for a number", "POST", "/v2/models/scalars/infer", `{"inputs":[{"name":"input_1","shape":[1],"datatype":"BYTES","data":["x"]}]}`, 400, "it takes no strings", nil},
		{"unknown output", "POST", "/v2/models/digits/infer", `{"outputs":[{"name":"y"}],` + good[1:], 400, `no output \"y\"`, nil},
		{"classification", "POST", "/v2/models/digits/infer", `{"outputs":[{"name":"output_0","parameters":{"classification":-3}}],` + good[1:], 400, "classification", nil},
		{"bad parameter", "POST", "/v2/models/digits/infer", `{"parameters":{"timeout":-5},` + good[1:], 400, "parameters.timeout", nil},
		{"sequence without a name", "POST", "/v2/models/digits/infer", `{"parameters":{"sequence_start":true},` + good[1:], 400, "sequence_id", nil},
		{"unknown sequence", "POST", "/v2/models/digits/infer", `{"parameters":{"sequence_id":7},` + good[1:], 410, "sequence_start", nil},
		{"compressed", "POST", "/v2/models/digits/infer", good, 415, "gzip", []string{"Content-Encoding", "gzip"}},
		{"huge header", "POST", "/v2/models/digits/infer", good, 413, oip.HeaderLength, []string{oip.HeaderLength, "99999999999"}},
		{"long body", "POST", "/v2/models/digits/infer", good + strings.Repeat(" ", 1<<17), 413, "at most", nil},
		{"load", "POST", "/v2/repository/models/digits/load", "", 403, "disabled", nil},
	} {
		w := ask(s, c.method, c.path, c.body, c.header...)
		var object struct{ Error *string }
		err := json.Unmarshal(w.Body.Bytes(), &object)
		if w.Code != c.code || err != nil || object.Error == nil || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s: got %d, %s, want %d with %s", c.name, w.Code, w.Body, c.code, c.text)
		}
	}
}

// TestStates distinguishes models that are not loaded from unknown ones.
func TestStates(t *testing.T) {
	opening, release := make(chan struct{}), make(chan struct{})
	broken := false
	open := func(ctx context.Context) (*etrun.Program, error) {
		close(opening)
		<-release
		if broken {
			return nil, errors.New("broken")
		}
		return program("digits/portable.pte")(ctx)
	}
	s, err := serve.New(serve.Options{}, serve.Config{Name: "m", Open: open})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	states := func(want serve.State, infer, ready int) {
		t.Helper()
		w := ask(s, "POST", "/v2/models/m/infer", "{}")
		if got := s.Model("m").State(); got != want || w.Code != infer || infer == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("state %s, infer %d %s, want %s, %d", got, w.Code, w.Body, want, infer)
		}
		if w := ask(s, "GET", "/v2/health/ready", ""); w.Code != ready || strings.Contains(w.Body.String(), `\"m\"`) {
			t.Errorf("%s: ready %d, want %d: %s", want, w.Code, ready, w.Body)
		}
		if w, one := ask(s, "GET", "/v2/models/m/ready", ""), map[int]int{400: 200}[infer]; w.Code != cmp.Or(one, infer) {
			t.Errorf("%s: model ready %d, want %d", want, w.Code, cmp.Or(one, infer))
		}
		if w := ask(s, "GET", "/v2/health/live", ""); w.Code != 200 {
			t.Errorf("%s: live %d", want, w.Code)
		}
	}
	unloaded := false // on purpose
	load := func(during serve.State, infer int) error {
		opening, release = make(chan struct{}), make(chan struct{})
		ended := make(chan error)
		go func() { ended <- s.LoadAll(context.Background()) }()
		<-opening
		states(during, infer, map[bool]int{true: 200, false: 503}[during == serve.Ready || unloaded])
		close(release)
		return <-ended
	}
	states(serve.Unloaded, 404, 503)
	broken = true
	if err := load(serve.Loading, 503); err == nil {
		t.Error("a broken model loads")
	}
	states(serve.Failed, 503, 503)
	broken = false
	if err := load(serve.Loading, 503); err != nil {
		t.Error(err)
	}
	states(serve.Ready, 400, 200)
	broken = true
	if err := load(serve.Ready, 400); err == nil {
		t.Error("a broken model loads")
	}
	states(serve.Ready, 400, 200)
	if err := s.Model("m").Unload(t.Context()); err != nil {
		t.Error(err)
	}
	unloaded = true // the server stays ready, also when the model cannot be loaded again
	states(serve.Unloaded, 404, 200)
	if err := load(serve.Loading, 503); err == nil {
		t.Error("a broken model loads")
	}
	states(serve.Failed, 503, 200)
	broken = false
	if err := load(serve.Loading, 503); err != nil {
		t.Error(err)
	}
	states(serve.Ready, 400, 200)
}

// TestPanic checks that answers contain no internal details.
func TestPanic(t *testing.T) {
	s := server(t, serve.Options{}, adder("m", func(sum []float32) {
		if sum[0] > 900 {
			panic("secret")
		}
	}))
	if _, w := infer(t, s, "/v2/models/m/infer", four(1000)); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
	for range 3 {
		if _, w := infer(t, s, "/v2/models/m/infer", four(1)); w.Code != 200 {
			t.Errorf("after a panic: %d, %s", w.Code, w.Body)
		}
	}
}

// adder adds its input to its state, with an operator that passes the sum to hear.
func adder(name string, hear func(sum []float32)) serve.Config {
	op := kernels.Op{Schema: "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)",
		Func: func(_ *kernels.Ctx, a kernels.Args) error {
			x, y, sum := tensor.Data[float32](a.Tensor(0)), tensor.Data[float32](a.Tensor(1)), tensor.Data[float32](a.Tensor(3))
			for i := range sum {
				sum[i] = x[i] + y[i]
			}
			hear(sum)
			return nil
		}}
	return serve.Config{Name: name, Open: program("pte/initial_state.pte", etrun.WithOperators(op))}
}

// four returns the input of an adder.
func four(x float32) oip.Tensor { return floats("input_0", []int{4}, x, x, x, x) }
