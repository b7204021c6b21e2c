package xnnpack

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestSurveyWorth checks whether opening the library is worth its cost for estimated graphs.
func TestSurveyWorth(t *testing.T) {
	us := func(inGo, library float64) cost.Estimates {
		return cost.Estimates{cost.ByLibrary: time.Duration(library * 1e3), cost.ByGo: time.Duration(inGo * 1e3)}
	}
	for _, test := range []struct {
		name  string
		graph cost.Estimates
		count int
		worth bool
	}{
		{"faster in Go", us(3, 5), 30, false},
		{"slightly faster in the library", us(1.03, 1), 30, false},
		{"faster in the library", us(1.07, 1), 30, true},
		{"much faster in the library, but short", us(0.3, 0.2), 5, true},
		{"much faster in the library", us(12, 8), 30, true},
		{"one long graph", us(50, 40), 1, true},
		{"one short graph", us(0.2, 0.15), 1, false},
		{"one graph with close estimates", us(7, 7.5), 1, true},
	} {
		var s survey
		for range test.count {
			s.add(test.graph)
		}
		if got := s.worth(); got != test.worth {
			t.Errorf("%s: got %v, want %v", test.name, got, test.worth)
		}
	}
}

// TestSurvey compiles methods of several graphs with the engine that the survey chose for the scratch.
func TestSurvey(t *testing.T) {
	xnntest.Library(t)
	move := func(dims ...int) []byte {
		m := graphtest.NewMaker(1)
		x := m.Input(graph.FP32, dims...)
		return graphtest.Encode(m.Done(m.TransposedLike(x, []int{1, 0, 2})))
	}
	magnitudes := func(n int) []byte {
		m := graphtest.NewMaker(1)
		x, y := m.Input(graph.FP32, 1, n), m.Value(graph.FP32, 1, n)
		m.Node("Abs", []int{x}, []int{y})
		return graphtest.Encode(m.Done(y))
	}
	sum := func(dims ...int) []byte {
		m := graphtest.NewMaker(1)
		a, b, y := m.Input(graph.QInt8, dims...), m.Input(graph.QInt8, dims...), m.Value(graph.QInt8, dims...)
		m.Node("Add", []int{a, b}, []int{y})
		return graphtest.Encode(m.Done(y))
	}
	for _, test := range []struct {
		name    string
		payload []byte
		count   int
		engine  string
	}{
		{"one short graph", magnitudes(4096), 1, "go"},
		{"one long graph", move(64, 64, 256), 1, "native"},
		{"short graphs", magnitudes(4096), 5, "go"},
		{"short graphs much faster in the library", sum(2, 8), 5, "native"},
		{"long graphs", move(64, 64, 256), 5, "native"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, scratch := Backend{Library: xnntest.Path()}, new(delegate.Scratch)
			defer scratch.Close()
			var payloads []*delegate.Payload
			for i := range test.count {
				payloads = append(payloads, &delegate.Payload{Index: i, Data: test.payload, Scratch: scratch})
			}
			if err := b.Survey(payloads); err != nil {
				t.Fatal(err)
			}
			for round := range 2 { // the decision remains for the second compile
				for i, p := range payloads {
					if got := engineOf(t, b, p); got != test.engine {
						t.Errorf("round %d, graph %d: got engine %q, want %q", round, i, got, test.engine)
					}
				}
			}
		})
	}
}

func engineOf(t *testing.T, b Backend, p *delegate.Payload) string {
	t.Helper()
	img, err := b.Compile(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	return img.Info().Engine
}

// TestSurveyOfFaults checks that Survey ignores a bad payload and Compile returns its error.
func TestSurveyOfFaults(t *testing.T) {
	scratch := new(delegate.Scratch)
	defer scratch.Close()
	good, bad := &delegate.Payload{Data: graphtest.Encode(linearGraph(graph.FP32)), Scratch: scratch}, &delegate.Payload{Index: 1, Data: []byte("no payload"), Scratch: scratch}
	b := Backend{Library: xnntest.Path()}
	if err := b.Survey([]*delegate.Payload{good, bad}); err != nil {
		t.Errorf("survey: got %v, want no error", err)
	}
	if _, err := b.Compile(context.Background(), bad); !errors.Is(err, delegate.ErrPayload) {
		t.Errorf("bad payload: got %v, want %v", err, delegate.ErrPayload)
	}
	img, err := b.Compile(context.Background(), good)
	if err != nil {
		t.Fatal(err)
	}
	img.Close()
}
