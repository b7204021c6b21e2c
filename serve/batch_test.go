package serve_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
)

// Joined rows give what each gives alone.
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
}

// A batch is executed as one, by its number of rows or after its delay; a client that left
// is not waited for.
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
	time.Sleep(10 * time.Millisecond)
	leave()
	<-alone
	waitFor(t, "the batch without members ends", func() bool { return s.Model("m").Waiting() == 0 })
	if n := executes.Load() - before; n != 1 {
		t.Errorf("%d executes, want one", n)
	}
}

// A method whose rows depend on one another, or whose sizes are fixed, is not batched.
func TestBatchRefused(t *testing.T) {
	for path, want := range map[string]string{"digits/portable.pte": "FP32 [1 1 8 8]", "pte/dynamic_view.pte": "cannot be batched"} {
		s, err := serve.New(serve.Options{}, serve.Config{Name: "m", Open: program(path), MaxBatch: 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.LoadAll(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		s.Close()
	}
}
