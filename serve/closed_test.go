package serve_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
)

// closable returns a server with a loaded model.
func closable(t *testing.T) (*serve.Server, *serve.Model) {
	s := server(t, serve.Options{Control: true}, serve.Config{Name: "digits", Open: program("digits/portable.pte")})
	return s, s.Model("digits")
}

// useServer calls the methods of a server and of its model, and returns the errors by name.
func useServer(s *serve.Server, m *serve.Model) map[string]error {
	ctx := context.Background()
	s.Model("digits")
	s.Models()
	s.Ready()
	s.AnswerBytes()
	h := s.NewReservation()
	defer h.Release()
	m.Name()
	m.State()
	m.Waiting()
	m.Sequences()
	m.Attached()
	return map[string]error{
		"Server.LoadAll": s.LoadAll(ctx),
		"Server.Put":     s.Put(ctx, serve.Config{Name: "digits", Open: program("digits/portable.pte")}),
		"Server.Try":     s.Try(ctx),
		"Hold.Grow":      h.Grow(1),
		"Model.Load":     m.Load(ctx),
		"Model.Try":      m.Try(ctx),
		"Model.Unload":   m.Unload(ctx),
		"Model.Peek":     m.Peek(ctx, func(serve.Attachment) error { return nil }),
		"Model.Use":      m.Use(ctx, func(context.Context, serve.Attachment, *serve.Lease) error { return nil }),
	}
}

// requests are sent to closed servers, with the expected status.
var requests = []struct {
	method, path string
	status       int
}{
	{"GET", "/v2", http.StatusOK},
	{"GET", "/v2/health/live", http.StatusOK},
	{"GET", "/v2/health/ready", http.StatusServiceUnavailable},
	{"GET", "/v2/models/digits", http.StatusNotFound},
	{"POST", "/v2/models/digits/infer", http.StatusNotFound},
	{"POST", "/v2/repository/index", http.StatusOK},
	{"POST", "/v2/repository/models/digits/load", http.StatusServiceUnavailable},
}

// TestClosedServer calls every method of a closed server and of its model, twice.
func TestClosedServer(t *testing.T) {
	s, m := closable(t)
	want := map[string]error{"Server.LoadAll": etrun.ErrClosed, "Server.Put": etrun.ErrClosed, "Model.Load": etrun.ErrClosed,
		"Model.Unload": serve.ErrNotReady, "Model.Use": serve.ErrUnknown, "Model.Peek": serve.ErrUnknown}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for name, err := range useServer(s, m) {
			if !errors.Is(err, want[name]) {
				t.Errorf("%s of a closed server: got %v, want %v", name, err, want[name])
			}
		}
		if s.Ready() || m.State() != serve.Unloaded || m.Sequences() != 0 {
			t.Errorf("a closed server: ready %v, its model %s with %d sequences", s.Ready(), m.State(), m.Sequences())
		}
		for _, r := range requests {
			if w := ask(s, r.method, r.path, "{}"); w.Code != r.status {
				t.Errorf("%s %s of a closed server: status %d, want %d: %s", r.method, r.path, w.Code, r.status, w.Body)
			}
		}
	}
}

// TestServerDuringClose uses a server while another goroutine closes it. No program remains loaded.
func TestServerDuringClose(t *testing.T) {
	for round := range 10 {
		s, m := closable(t)
		var both sync.WaitGroup
		both.Go(func() {
			for range round * 20 {
				runtime.Gosched()
			}
			s.Close()
		})
		for range 3 {
			for name, err := range useServer(s, m) {
				if errors.Is(err, etrun.ErrPanic) {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, r := range requests {
				if w := ask(s, r.method, r.path, "{}"); w.Code == http.StatusInternalServerError {
					t.Errorf("%s %s: %s", r.method, r.path, w.Body)
				}
			}
		}
		both.Wait()
		if models := s.Models(); slices.ContainsFunc(models, func(m *serve.Model) bool { return m.State() != serve.Unloaded }) {
			t.Error("a closed server has a loaded model")
		}
	}
}

// TestClosedProgram calls every method of a program of this process, its pool and its instance after Close.
func TestClosedProgram(t *testing.T) {
	ctx := context.Background()
	prog, err := program("digits/portable.pte")(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := serve.Local(prog, nil)
	pool, err := p.Pool(ctx, "forward", 1)
	if err != nil {
		t.Fatal(err)
	}
	own, err := p.Instance(ctx, "forward", nil)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.New(tensor.Float32, 1, 64)
	run := func(r serve.Runner) error {
		return r.Run(ctx, []tensor.Value{tensor.TensorValue(x)}, []int{0}, func(int, *tensor.Value) {})
	}
	for range 2 {
		if err := errors.Join(own.Close(), pool.Close(), p.Close()); err != nil {
			t.Fatal(err)
		}
		_, again := p.Pool(ctx, "forward", 1)
		_, other := p.Instance(ctx, "forward", own)
		_, alone := p.Instance(ctx, "forward", nil)
		for name, err := range map[string]error{"Pool": again, "Instance": alone, "Instance that shares": other,
			"Pool.Run": run(pool), "Instance.Run": run(own), "Instance.Reset": own.Reset()} {
			if !errors.Is(err, etrun.ErrClosed) {
				t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
			}
		}
		if own.Bytes() <= 0 || p.Down() != nil || len(p.MethodNames()) != 1 {
			t.Errorf("a closed program: %d bytes, %v, methods %q", own.Bytes(), p.Down(), p.MethodNames())
		}
	}
}
