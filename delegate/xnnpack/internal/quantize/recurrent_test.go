package quantize

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// layers is a graph of products and sums.
type layers struct {
	graph.Graph
	products []int
}

func (l *layers) value(data []byte) int {
	l.Values = append(l.Values, graph.Value{Data: data})
	return len(l.Values) - 1
}

func (l *layers) node(tag uint8, in ...int) int {
	y := l.value(nil)
	l.Nodes = append(l.Nodes, graph.Node{Type: graph.NodeTypes[tag], In: in, Out: []int{y}})
	return y
}

// product multiplies by a constant, which has a value of its own for each use.
func (l *layers) product(x int, filter []byte) int {
	y := l.node(graph.TagFullyConnected, x, l.value(filter), graph.None)
	l.products = append(l.products, y)
	return y
}

func TestRecurrent(t *testing.T) {
	a, b := []byte{1}, []byte{2}
	for name, c := range map[string]struct {
		build func(l *layers, x int)
		want  []bool // by product
	}{
		"layers": {func(l *layers, x int) { l.product(l.product(x, a), b) }, []bool{false, false}},
		"steps": {func(l *layers, x int) {
			h := l.product(x, a)
			for range 2 {
				h = l.node(graph.TagAdd, l.product(h, b), l.product(x, a))
			}
			l.product(h, []byte{3})
		}, []bool{true, true, true, true, true, false}},
		"several inputs": {func(l *layers, x int) {
			l.product(l.node(graph.TagAdd, x, x), a)
			l.product(l.node(graph.TagAdd, l.product(x, b), x), a)
		}, []bool{false, false, false}},
		"a cell whose state is an argument": {func(l *layers, x int) {
			gates := l.node(graph.TagAdd, l.product(x, a), l.product(l.value(nil), b))
			for _, tag := range []uint8{graph.TagSigmoid, graph.TagSigmoid, graph.TagTanh, graph.TagSigmoid} {
				l.product(l.node(tag, l.node(graph.TagStaticSlice, gates)), []byte{tag})
			}
		}, []bool{true, true, false, false, false, false}},
		"a gated linear unit": {func(l *layers, x int) {
			y := l.product(x, a)
			l.node(graph.TagMultiply, l.node(graph.TagSigmoid, l.node(graph.TagStaticSlice, y)), l.node(graph.TagTanh, l.node(graph.TagStaticSlice, y)))
		}, []bool{false}},
		"a product between": {func(l *layers, x int) { l.product(l.product(l.product(x, a), b), a) }, []bool{true, true, true}},
	} {
		l := &layers{}
		c.build(l, l.value(nil))
		var got []bool
		steps := recurrent(&l.Graph)
		for _, v := range l.products {
			got = append(got, steps[v])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
