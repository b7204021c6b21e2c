package text

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
)

func openProgram(t testing.TB, path string, options ...etrun.Option) *etrun.Program {
	t.Helper()
	p, err := etrun.Open(path, append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func newSession(t testing.TB, p *etrun.Program, options ...Option) *Session {
	t.Helper()
	m, err := Load(context.Background(), p, nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// collect returns the tokens and the text of a generation, and its last piece.
func collect(pieces iter.Seq2[Piece, error]) (ids []int, text string, last Piece, err error) {
	for p, e := range pieces {
		for _, t := range p.Tokens {
			ids = append(ids, t.ID)
		}
		text, last, err = text+p.Text, p, e
	}
	return ids, text, last, err
}

// drive generates greedily, calling the program directly with one token at a time.
func drive(t testing.TB, p *etrun.Program, prompt []int, n int) (ids []int) {
	t.Helper()
	ctx := context.Background()
	m, err := p.Load(ctx, "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for at, text := 0, slices.Clone(prompt); len(ids) < n; at++ {
		logits, err := etrun.Run[float32](ctx, m, []int64{int64(text[at])}, []int64{int64(at)})
		if err != nil {
			t.Fatal(err)
		}
		if at == len(text)-1 {
			ids = append(ids, argmax(logits))
			text = append(text, ids[len(ids)-1])
		}
	}
	return ids
}

// TestPrograms compares sessions with direct calls, on programs of exporters.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		file string
		want Info
	}{
		{"testdata/counted.pte", Info{BOS: -1, Context: 24, Vocabulary: 96, Chunk: 1, Cache: CacheRecurrent, Layers: -1}},
		{"testdata/dynamic.pte", Info{BOS: -1, Context: 32, Vocabulary: 256, Chunk: 31, Cache: CachePositions, Layers: -1}},
	} {
		p := openProgram(t, c.file)
		s := newSession(t, p)
		got := s.Model().Info()
		if !slices.Equal(got.EOS, c.want.EOS) || got.Context != c.want.Context || got.Cache != c.want.Cache || got.Chunk != c.want.Chunk {
			t.Errorf("%s: got %+v, want %+v", c.file, got, c.want)
		}
		for _, prompt := range [][]int{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {1, 2, 9}, {1, 2, 9, 11}} {
			const n = 8
			ids, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, Options{MaxTokens: n}))
			if want := drive(t, p, prompt, n); !slices.Equal(ids, want) || err != nil || last.Finish != FinishLength {
				t.Errorf("%s, prompt %d: got %d, %q, %v, want %d", c.file, prompt, ids, last.Finish, err, want)
			}
		}
	}
}
