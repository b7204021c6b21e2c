package serve_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
)

// TestPut adds, replaces and removes models during requests to another and to one that is replaced: no request fails.
func TestPut(t *testing.T) {
	config := func(name string, instances int) serve.Config {
		return serve.Config{Name: name, Instances: instances, Queue: 100, Open: program("pte/initial_state.pte")}
	}
	s := server(t, serve.Options{}, config("m", 2), config("old", 1))
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, w := infer(t, s, "/v2/models/m/infer", four(1)); w.Code != 200 {
					t.Errorf("%d, %s", w.Code, w.Body)
					return
				}
			}
		})
	}
	for i := range 20 {
		if err := errors.Join(s.Put(t.Context(), config("m", 1+i%3)), s.Put(t.Context(), config("new", 1))); err != nil {
			t.Error(err)
		}
	}
	if !s.Remove("old") || s.Remove("old") {
		t.Error("the old model was not removed once")
	}
	close(stop)
	callers.Wait()
	for name, want := range map[string]int{"m": 200, "new": 200, "old": 404} {
		if _, w := infer(t, s, "/v2/models/"+name+"/infer", four(1)); w.Code != want {
			t.Errorf("%s: %d, want %d", name, w.Code, want)
		}
	}
	broken := config("m", 1)
	broken.Open = func(context.Context) (*etrun.Program, error) { return nil, errors.New("broken") }
	added := broken
	added.Name = "added"
	removed := s.Model("new")
	if s.Put(t.Context(), broken) == nil || s.Put(t.Context(), added) == nil {
		t.Error("broken models load")
	}
	s.Remove("new")
	for name, want := range map[string]int{"m": 200, "added": 404, "new": 404} {
		if _, w := infer(t, s, "/v2/models/"+name+"/infer", four(1)); w.Code != want {
			t.Errorf("after broken models: %s: %d, want %d", name, w.Code, want)
		}
	}
	if err := s.PutFailed(added, errors.New("broken")); err != nil || s.PutFailed(config("m", 1), errors.New("broken")) != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{"m": 200, "added": 503} {
		_, w := infer(t, s, "/v2/models/"+name+"/infer", four(1))
		if w.Code != want || strings.Contains(w.Body.String(), "broken") {
			t.Errorf("with a model that failed: %s: %d %s, want %d", name, w.Code, w.Body, want)
		}
	}
	if rows := s.Index(false); rows[0].Name != "added" || rows[0].State != serve.Failed || rows[0].Reason != "broken" || rows[0].Version != "" {
		t.Errorf("index: %v", rows)
	}
	if _, err := s.ModelMetadata(t.Context(), "added", ""); serve.Explain(err).Status != 503 || !strings.Contains(serve.Explain(err).Text, "UNAVAILABLE: broken") {
		t.Errorf("metadata: %v", serve.Explain(err))
	}
	if err := s.Put(t.Context(), config("added", 1)); err != nil || s.Model("added").State() != serve.Ready || !s.Remove("added") {
		t.Errorf("put: %v", err)
	}
	if s.PutFailed(config("stats", 1), errors.New("broken")) == nil {
		t.Error("a model that failed has a name that is part of a path")
	}
	await.True(t, "a removed model is closed", func() bool { return removed.State() == serve.Unloaded })
	if err := removed.Load(t.Context()); !errors.Is(err, serve.ErrUnknown) {
		t.Errorf("a removed model is loaded: %v", err)
	}
	if err := s.Put(t.Context(), config("stats", 1)); err == nil {
		t.Error("a model has a name that is part of a path")
	}
	if !s.Ready() {
		t.Error("not ready")
	}
}
