package main

import (
	"bytes"
	"context"
	"math"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
)

const model = "../../testdata/stream/detector.pte"

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// server serves the model, with room for two sequences.
func server(t *testing.T) (*serve.Server, string) {
	t.Helper()
	s, err := serve.New(serve.Options{}, serve.Config{Name: "detector", Sequences: serve.SequenceLimits{Max: 2},
		Open: func(ctx context.Context) (*etrun.Program, error) {
			return etrun.OpenSource(ctx, etrun.File(model), etrun.WithDelegates(all.Backends()...))
		}})
	if err == nil {
		err = s.LoadAll(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return s, h.URL + "/v2/models/detector/infer"
}

// The scores of a stream are PyTorch's, here and on a server, from frame to frame.
func TestStream(t *testing.T) {
	s, url := server(t)
	samples := read(t, "../../testdata/stream/samples.f32.bin")
	want := tensor.View[float32](append(tensor.AlignedBytes(0), read(t, "../../testdata/stream/scores.f32.bin")...))
	for _, where := range []string{"", url, url} {
		var out bytes.Buffer
		if err := run(t.Context(), model, where, bytes.NewReader(append(samples, 1, 2, 3)), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(out.String())
		if len(lines) != 2*len(want) {
			t.Fatalf("at %q: %q, want %d scores", where, lines, len(want))
		}
		for i, w := range want {
			got, err := strconv.ParseFloat(lines[2*i+1], 64)
			if distance := math.Abs(got - float64(w)); err != nil || !(distance <= 4.65e-6+1e-5*math.Abs(float64(w))) {
				t.Errorf("at %q: score %d is %v, want %v, distance %v", where, i, got, w, distance)
			}
		}
	}
	if n := s.Model("detector").Sequences(); n != 0 {
		t.Errorf("%d sequences are open", n)
	}
}

// Two streams at once do not hear one another.
func TestStreams(t *testing.T) {
	_, url := server(t)
	loud := make([]float32, frame)
	for i := range loud {
		loud[i] = float32(i%7) - 3
	}
	silence := make([]float32, frame)
	var alone, beside [3]float32
	for k, scores := range []*[3]float32{&alone, &beside} {
		a, _ := newListener(t.Context(), model, url)
		b, _ := newListener(t.Context(), model, url)
		for i := range scores {
			var err error
			if scores[i], err = a.listen(t.Context(), silence); err != nil {
				t.Fatal(err)
			}
			if k == 1 {
				if _, err := b.listen(t.Context(), loud); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if alone != beside || alone[0] == alone[1] {
		t.Errorf("scores %v, and beside another stream %v", alone, beside)
	}
}
