package lowering

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// payloadOf is an opened payload with a number of inputs.
type payloadOf struct {
	Opened
	inputs int
}

func (p payloadOf) Inputs() int { return p.inputs }

func (payloadOf) Estimate() time.Duration { return 0 }

func signature(t *testing.T, schema string) *kernels.Signature {
	t.Helper()
	sig, err := kernels.ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// TestReaders checks which calls read and write the values of a graph.
func TestReaders(t *testing.T) {
	add := signature(t, "test::add.out(Tensor a, Tensor b, *, Tensor(a!) out)")
	join := signature(t, "test::join.out(Tensor?[] list, *, Tensor(a!) out)")
	x := GraphValue{Kind: tensor.KindTensor}
	list := GraphValue{Kind: tensor.KindOptionalTensorList, Items: []int{0, -1, 2, 0}}
	g := &Graph{
		Values: []GraphValue{0: x, 1: x, 2: x, 3: x, 4: x, 5: x, 6: x, 7: list, 8: x, 9: x},
		Calls: []GraphCall{
			{Sig: add, Args: []int{0, 0, 2, 2}},                      // the same value twice
			{View: true, Args: []int{2, 3}},                          // a view
			{Sig: join, Args: []int{7, 4, 4}},                        // a list with a duplicate and a None
			{Payload: payloadOf{inputs: 2}, Args: []int{3, 0, 5, 6}}, // two outputs
			{Sig: add, Args: []int{5, 0, 8, 8}},
		},
	}
	for v, want := range []struct {
		writer  int
		readers []int
	}{{-1, []int{0, 2, 3, 4}}, {-1, nil}, {0, []int{1, 2}}, {1, []int{3}}, {2, nil}, {3, []int{4}}, {3, nil}, {-1, nil}, {4, nil}, {-1, nil}} {
		if got := g.Readers(v); !slices.Equal(got, want.readers) || g.Writer(v) != want.writer {
			t.Errorf("value %d: got writer %d and readers %v, want %d and %v", v, g.Writer(v), got, want.writer, want.readers)
		}
	}
	if got := append(g.Readers(0), 99); got[len(got)-1] != 99 || !slices.Equal(g.Readers(2), []int{1, 2}) {
		t.Errorf("after an append to the readers of value 0, those of value 2 are %v", g.Readers(2))
	}
}

// TestReadersOfRandomGraphs compares readers and writers with those that a search finds.
func TestReadersOfRandomGraphs(t *testing.T) {
	add := signature(t, "test::add.out(Tensor a, Tensor b, *, Tensor(a!) out)")
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		g := &Graph{Values: make([]GraphValue, 2+r.IntN(20))}
		for v := range g.Values {
			g.Values[v].Kind = tensor.KindTensor
		}
		for y := 2; y < len(g.Values); y++ {
			g.Calls = append(g.Calls, GraphCall{Sig: add, Args: []int{r.IntN(y), r.IntN(y), y, y}})
		}
		for v := range g.Values {
			writer, readers := -1, []int(nil)
			for i, c := range g.Calls {
				if slices.Contains(c.Args[:2], v) {
					readers = append(readers, i)
				}
				if c.Args[2] == v {
					writer = i
				}
			}
			if got := g.Readers(v); !slices.Equal(got, readers) || g.Writer(v) != writer {
				t.Fatalf("value %d of %v: got writer %d and readers %v, want %d and %v", v, g.Calls, g.Writer(v), got, writer, readers)
			}
		}
	}
}
