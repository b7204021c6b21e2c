package serve_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// TestBatches checks that batched rows get the results of separate runs.
func TestBatches(t *testing.T) {
	open := program("pte/dynamic_pair.pte")
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: open, Instances: 1, MaxBatch: 5, BatchDelay: 30 * time.Millisecond})
	var all sync.WaitGroup
	for i := range 20 {
		rows := 1 + i%3
		values := make([]float32, rows*3)
		for k := range values {
			values[k] = float32(i*10+k) / 17
		}
		want := library(t, open, "", tensor.Of(values, rows, 3), tensor.Of(values, rows, 3))
		all.Go(func() {
			shape := []int{rows, 3}
			got, w := infer(t, s, "/v2/models/m/infer", floats("input_0", shape, values...), floats("input_1", shape, values...))
			if got == nil || !bytes.Equal(got.Outputs[0].Data, want[0]) || !bytes.Equal(got.Outputs[1].Data, want[1]) || got.Outputs[0].Shape[0] != rows {
				t.Errorf("request %d: %d, %s, %+v", i, w.Code, w.Body, got)
			}
		})
	}
	all.Wait()
	checkBatchStatistics(t, s)
}

// checkBatchStatistics checks the statistics after the 20 requests of TestBatches: each is counted, with its rows, and there are
// fewer runs.
func checkBatchStatistics(t *testing.T, s *serve.Server) {
	t.Helper()
	type counted struct{ Count int }
	var all struct {
		Models []struct {
			Inferences int `json:"inference_count"`
			Executions int `json:"execution_count"`
			Stats      struct {
				Success, Queue counted
				Infer          counted `json:"compute_infer"`
			} `json:"inference_stats"`
		} `json:"model_stats"`
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/v2/models/stats", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || len(all.Models) != 1 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	m := &all.Models[0]
	if m.Stats.Success.Count != 20 || m.Stats.Queue.Count != 20 || m.Stats.Infer.Count != 20 || m.Inferences != 39 || m.Executions >= 20 || m.Executions < 39/5 {
		t.Errorf("statistics %+v, want 20 requests of 39 rows in fewer runs", *m)
	}
}

// TestConfiguration checks the configurations of a model that is batched, and of others.
func TestConfiguration(t *testing.T) {
	pair := program("pte/dynamic_pair.pte")
	const tensors = `"platform":"executorch_pte","backend":"executorch","max_batch_size":%d,` +
		`"input":[{"name":"input_0","data_type":"TYPE_FP32","dims":[%s]},{"name":"input_1","data_type":"TYPE_FP32","dims":[%[2]s]}],` +
		`"output":[{"name":"output_0","data_type":"TYPE_FP32","dims":[%[2]s]},{"name":"output_1","data_type":"TYPE_FP32","dims":[%[2]s]}],`
	const rest = `"parameters":{},"model_transaction_policy":{"decoupled":false}}`
	s := server(t, serve.Options{}, serve.Config{Name: "one", Open: pair, Instances: 3},
		serve.Config{Name: "rows", Open: pair, Instances: 1, MaxBatch: 4, BatchDelay: 2 * time.Millisecond})
	for name, want := range map[string]string{
		"one": `{"name":"one",` + fmt.Sprintf(tensors, 0, "-1,-1") + `"instance_group":[{"name":"one","kind":"KIND_CPU","count":3}],` + rest,
		"rows": `{"name":"rows",` + fmt.Sprintf(tensors, 4, "-1") + `"instance_group":[{"name":"rows","kind":"KIND_CPU","count":1}],` +
			`"dynamic_batching":{"max_queue_delay_microseconds":2000},` + rest,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/v2/models/"+name+"/config", nil))
		if got := w.Body.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestBatchForms checks that a batch runs once, when it is full or after its delay, without calls
// whose client has disconnected.
func TestBatchForms(t *testing.T) {
	var executes atomic.Int64
	count := trace.Func{Kinds: trace.Executes, Do: func(e *trace.Event) {
		if e.Kind == trace.Execute {
			executes.Add(1)
		}
	}}
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: program("pte/dynamic_pair.pte", etrun.WithObserver(count)),
		MaxBatch: 3, BatchDelay: time.Minute})
	before := executes.Load()
	const body = `{"inputs":[{"name":"input_0","shape":[1,3],"datatype":"FP32","data":[1,2,3]},{"name":"input_1","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`
	begun := time.Now()
	var list []<-chan *httptest.ResponseRecorder
	for range 3 {
		list = append(list, send(s, t.Context(), body))
	}
	for _, done := range list {
		if w := <-done; w.Code != 200 {
			t.Errorf("%d, %s", w.Code, w.Body)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a full batch took %v", took)
	}
	gone, leave := context.WithCancel(t.Context())
	alone := send(s, gone, body)
	await.True(t, "it is in a batch", func() bool { return s.Model("m").Waiting() > 0 })
	leave()
	<-alone
	await.True(t, "the batch without members ends", func() bool { return s.Model("m").Waiting() == 0 })
	if n := executes.Load() - before; n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// ref is a value of a program of rows: 0 is the input, n the result of the nth call.
type ref int

// rowCall is a call of a program of rows: its arguments are refs, ints, lists of ints, bools or nil. Its result has the largest sizes
// given; none means that it is a number.
type rowCall struct {
	op    string
	args  []any
	sizes []int
}

// rowProgram returns a program whose input has up to 4 rows, float32 [4, 3, 3], and whose output is the result of the last call.
func rowProgram(calls ...rowCall) func(context.Context) (*etrun.Program, error) {
	m := pte.Method{Name: "forward", Arenas: []pte.Arena{{}}}
	value := func(v pte.Value) int {
		m.Values = append(m.Values, v)
		return len(m.Values) - 1
	}
	rows := func(sizes ...int) int {
		return value(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes,
			DimOrder: tensor.ContiguousOrder(len(sizes)), Dynamism: tensor.DynamicBound}})
	}
	results := []int{rows(4, 3, 3)}
	argument := func(a any) int {
		switch a := a.(type) {
		case ref:
			return results[a]
		case int:
			return value(pte.Value{Kind: tensor.KindInt, Int: int64(a)})
		case bool:
			return value(pte.Value{Kind: tensor.KindBool, Bool: a})
		}
		return value(pte.Value{})
	}
	chain := pte.Chain{}
	for i, c := range calls {
		var args []int
		for _, a := range c.args {
			if list, ok := a.([]any); ok {
				var items []int
				for _, item := range list {
					items = append(items, argument(item))
				}
				args = append(args, value(pte.Value{Kind: tensor.KindIntList, Items: items}))
				continue
			}
			args = append(args, argument(a))
		}
		if c.sizes == nil {
			args = append(args, value(pte.Value{Kind: tensor.KindInt}))
			results = append(results, args[len(args)-1])
		} else {
			out := rows(c.sizes...)
			args, results = append(args, out, out), append(results, out)
		}
		if strings.Contains(c.op, "et_view") {
			args = args[:len(args)-1]
		}
		name, overload, _ := strings.Cut(c.op, ".")
		m.Operators = append(m.Operators, pte.Operator{Name: name, Overload: overload})
		chain.Instructions = append(chain.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: i, Args: args})
	}
	m.Inputs, m.Outputs, m.Chains = results[:1], results[len(results)-1:], []pte.Chain{chain}
	return func(context.Context) (*etrun.Program, error) {
		return etrun.Parse(ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{}), etrun.WithDelegates(all.Backends()...))
	}
}

// rowCases are programs, and the instruction that mixes their rows, "" for none.
var rowCases = []struct {
	name, refused string
	calls         []rowCall
}{
	{"function", "", []rowCall{{"aten::sigmoid.out", []any{ref(0)}, []int{4, 3, 3}}}},
	{"softmax of a row", "", []rowCall{{"aten::_softmax.out", []any{ref(0), -1, false}, []int{4, 3, 3}}}},
	{"rows in another place", "", []rowCall{
		{"aten::permute_copy.out", []any{ref(0), []any{1, 0, 2}}, []int{3, 4, 3}},
		{"aten::_softmax.out", []any{ref(1), 0, false}, []int{3, 4, 3}},
		{"aten::permute_copy.out", []any{ref(2), []any{1, 2, 0}}, []int{4, 3, 3}}}},
	{"several indices for each row", "", []rowCall{
		{"aten::sym_size.int", []any{ref(0), 0}, nil},
		{"executorch_prim::mul.Scalar", []any{ref(1), 3}, nil},
		{"aten::view_copy.out", []any{ref(0), []any{ref(2), 3}}, []int{12, 3}},
		{"aten::_softmax.out", []any{ref(3), 1, false}, []int{12, 3}},
		{"aten::view_copy.out", []any{ref(4), []any{ref(1), 3, 3}}, []int{4, 3, 3}}}},
	{"product of a row with itself", "", []rowCall{{"aten::bmm.out", []any{ref(0), ref(0)}, []int{4, 3, 3}}}},
	{"sum of what each row repeats", "", []rowCall{
		{"aten::sym_size.int", []any{ref(0), 0}, nil},
		{"aten::full.out", []any{[]any{ref(1), 1, 3}, 2}, []int{4, 1, 3}},
		{"aten::add.out", []any{ref(0), ref(2), 1}, []int{4, 3, 3}}}},
	{"maximum of all rows", "instruction 0 (aten::amax.out)", []rowCall{
		{"aten::amax.out", []any{ref(0), []any{0}, true}, []int{1, 3, 3}},
		{"aten::sub.Scalar_out", []any{ref(1), 1000, 1}, []int{1, 3, 3}},
		{"aten::maximum.out", []any{ref(0), ref(2)}, []int{4, 3, 3}}}},
	{"softmax of rows", "instruction 0 (aten::_softmax.out)", []rowCall{{"aten::_softmax.out", []any{ref(0), -3, false}, []int{4, 3, 3}}}},
	{"sums of rows so far", "instruction 0 (aten::cumsum.out)", []rowCall{{"aten::cumsum.out", []any{ref(0), 0, nil}, []int{4, 3, 3}}}},
	{"sorted rows", "instruction 0 (aten::flip.out)", []rowCall{{"aten::flip.out", []any{ref(0), []any{0}}, []int{4, 3, 3}}}},
	{"rows in another order of memory", "instruction 0 (aten::view_copy.out)", []rowCall{
		{"aten::view_copy.out", []any{ref(0), []any{3, -1, 3}}, []int{3, 4, 3}},
		{"aten::permute_copy.out", []any{ref(1), []any{1, 0, 2}}, []int{4, 3, 3}}}},
	{"products of rows with rows", "instruction 1 (aten::linear.out)", []rowCall{
		{"aten::view_copy.out", []any{ref(0), []any{-1, 9}}, []int{4, 9}},
		{"aten::linear.out", []any{ref(1), ref(1), nil}, []int{4, 4}}}},
	{"the number of rows as an operand", "instruction 1 (aten::mul.Scalar_out)", []rowCall{
		{"aten::sym_size.int", []any{ref(0), 0}, nil},
		{"aten::mul.Scalar_out", []any{ref(0), ref(1)}, []int{4, 3, 3}}}},
	{"the numbers of the rows", "instruction 1 (aten::arange.out)", []rowCall{
		{"aten::sym_size.int", []any{ref(0), 0}, nil},
		{"aten::arange.out", []any{ref(1)}, []int{4}},
		{"aten::view_copy.out", []any{ref(2), []any{ref(1), 1, 1}}, []int{4, 1, 1}},
		{"aten::add.out", []any{ref(0), ref(3), 1}, []int{4, 3, 3}}}},
}

// TestBatchRefused checks that methods with dependent rows or fixed sizes are not batched, with the instruction that mixes rows. Of
// others each request has its own answer, whatever others send.
func TestBatchRefused(t *testing.T) {
	for path, want := range map[string]string{"digits/portable.pte": "FP32 [1 1 8 8]", "pte/dynamic_view.pte": "output 0 has not the rows"} {
		checkRefused(t, path, program(path), want)
	}
	for _, c := range rowCases {
		if c.refused != "" {
			checkRefused(t, c.name, rowProgram(c.calls...), c.refused+" may compute a row from several rows")
			continue
		}
		checkRows(t, c.name, rowProgram(c.calls...))
	}
}

func checkRefused(t *testing.T, name string, open func(context.Context) (*etrun.Program, error), want string) {
	t.Helper()
	s, err := serve.New(serve.Options{}, serve.Config{Name: "m", Open: open, MaxBatch: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.LoadAll(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
}

// checkRows sends requests of rows of very different sizes together.
func checkRows(t *testing.T, name string, open func(context.Context) (*etrun.Program, error)) {
	t.Helper()
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: open, Instances: 1, MaxBatch: 4, BatchDelay: 20 * time.Millisecond})
	var all sync.WaitGroup
	for i := range 8 {
		rows := 1 + i%3
		values := make([]float32, rows*9)
		for k := range values {
			values[k] = float32(k%7-3) * float32([]int{1, 3000, 2, 5}[i%4])
		}
		want := library(t, open, "", tensor.Of(values, rows, 3, 3))
		all.Go(func() {
			got, w := infer(t, s, "/v2/models/m/infer", floats("input_0", []int{rows, 3, 3}, values...))
			if got == nil || !bytes.Equal(got.Outputs[0].Data, want[0]) {
				t.Errorf("%s, request %d: %d, %s", name, i, w.Code, w.Body)
			}
		})
	}
	all.Wait()
}

// BenchmarkBatch has sixteen clients send one row each, with and without batches, alternating. The
// model is that of ETRUN_SERVE_MODEL, one of the tests, or linear layers of 64 MiB.
func BenchmarkBatch(b *testing.B) {
	path := cmp.Or(os.Getenv("ETRUN_SERVE_MODEL"), "../testdata/pte/dynamic_pair.pte")
	b.Run("file", func(b *testing.B) { benchmarkBatch(b, etrun.File(path), 4) })
	layers := linearLayers(4, 2048, 16)
	for _, rows := range []int{4, 16} {
		b.Run(fmt.Sprintf("linear/%d", rows), func(b *testing.B) { benchmarkBatch(b, etrun.Bytes("linear.pte", layers), rows) })
	}
}

// linearLayers returns a program of layers, each a product of up to the given number of rows with a
// square matrix of random elements.
func linearLayers(n, width, rows int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	value := func(dynamism tensor.Dynamism, storage pte.Storage, sizes ...int) pte.Value {
		t := &pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: []uint8{0, 1}, Dynamism: dynamism, Storage: storage}
		if storage == pte.Constant {
			t.Data = tensor.AlignedBytes(int(t.NBytes()))
			for i := range tensor.View[float32](t.Data) {
				tensor.View[float32](t.Data)[i] = (r.Float32() - 0.5) / 16
			}
		}
		return pte.Value{Kind: tensor.KindTensor, Tensor: t}
	}
	m := pte.Method{Name: "forward", Operators: []pte.Operator{{Name: "aten::linear", Overload: "out"}}, Chains: []pte.Chain{{}}}
	m.Values = []pte.Value{{Kind: tensor.None}, value(tensor.DynamicBound, pte.Unplanned, rows, width)}
	for x := 1; n > 0; n, x = n-1, x+2 {
		m.Values = append(m.Values, value(tensor.Static, pte.Constant, width, width), value(tensor.DynamicBound, pte.Unplanned, rows, width))
		in := &m.Chains[0].Instructions
		*in = append(*in, pte.Instruction{Kind: pte.KernelCall, Args: []int{x, x + 1, 0, x + 2, x + 2}})
		m.Outputs = []int{x + 2}
	}
	m.Inputs = []int{1}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{})
}

func benchmarkBatch(b *testing.B, source etrun.Source, most int) {
	open := func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, source, etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1), etrun.WithLowering(etrun.LowerAuto))
	}
	const callers, each = 16, 20
	var arms [2]*serve.Server
	for i, rows := range []int{1, most} {
		s, err := serve.New(serve.Options{}, serve.Config{Name: "m", Open: open, Instances: 1, Queue: 2 * callers, MaxBatch: rows})
		if err == nil {
			err = s.LoadAll(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		arms[i] = s
	}
	body, n := oneRow(b, open)
	var took [2]time.Duration
	for b.Loop() {
		for i, s := range arms {
			begun := time.Now()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						if w := ask(s, "POST", "/v2/models/m/infer", body, headerLength(n)...); w.Code != 200 {
							b.Errorf("%d, %s", w.Code, w.Body)
						}
					}
				})
			}
			group.Wait()
			took[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "times-the-throughput")
}

// oneRow returns a request with one row of zeros for each input.
func oneRow(b *testing.B, open func(context.Context) (*etrun.Program, error)) (body string, header int) {
	b.Helper()
	prog, err := open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer prog.Close()
	meta, err := prog.Meta("")
	if err != nil {
		b.Fatal(err)
	}
	r := &oip.Request{}
	for i := range meta.Inputs {
		sizes := append([]int{1}, meta.Inputs[i].Sizes[1:]...)
		d, _ := oip.DatatypeOf(meta.Inputs[i].DType)
		r.Inputs = append(r.Inputs, oip.Tensor{Name: fmt.Sprintf("input_%d", i), Datatype: d, Shape: sizes, Data: tensor.New(meta.Inputs[i].DType, sizes...).Data, Binary: true})
	}
	text, n, err := r.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	return string(text), n
}
