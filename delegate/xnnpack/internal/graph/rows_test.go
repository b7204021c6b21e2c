package graph_test

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const fp32 = graph.FP32

// rowCase is a graph of one node, and the dimension of the rows of its result; none if elements depend on several rows.
type rowCase struct {
	name string
	make func(m *graphtest.Maker) (in []int, out int)
	rows []int // of the inputs
	want int
}

const none = -1

// params sets parameters of a node.
func params[P any](set func(*P)) func(*graph.Node) {
	return func(n *graph.Node) { set(graph.Params[P](n)) }
}

func unaryRows(kind string, dims, out []int, set ...func(*graph.Node)) func(m *graphtest.Maker) ([]int, int) {
	return func(m *graphtest.Maker) ([]int, int) {
		x, y := m.Input(fp32, dims...), m.Value(fp32, out...)
		m.Node(kind, []int{x}, []int{y}, set...)
		return []int{x}, y
	}
}

func addRows(a, b, out []int, constant bool) func(m *graphtest.Maker) ([]int, int) {
	return func(m *graphtest.Maker) ([]int, int) {
		x := m.Input(fp32, a...)
		in := []int{x}
		y := 0
		if constant {
			y = m.Constant(fp32, 0, b...)
		} else {
			y = m.Input(fp32, b...)
			in = append(in, y)
		}
		z := m.Value(fp32, out...)
		m.Node("Add", []int{x, y}, []int{z})
		return in, z
	}
}

func reshape(sizes ...int) func(*graph.Node) {
	return params(func(p *graph.ReshapeParams) { p.Sizes = sizes })
}

func transpose(perm ...int) func(*graph.Node) {
	return params(func(p *graph.TransposeParams) { p.Perm = perm })
}

func slice(offsets, sizes []int) func(*graph.Node) {
	return params(func(p *graph.SliceParams) { p.Offsets, p.Sizes = offsets, sizes })
}

func product(m *graphtest.Maker) ([]int, int) {
	x, y := m.Input(fp32, 1, 5, 4), m.Value(fp32, 1, 5, 3)
	m.Node("FullyConnected", []int{x, m.Constant(fp32, 0, 3, 4), m.Constant(fp32, 0, 3)}, []int{y})
	return []int{x}, y
}

func quantized(nonbatch int) func(m *graphtest.Maker) ([]int, int) {
	return func(m *graphtest.Maker) ([]int, int) {
		x, y := m.Input(fp32, 1, 5, 4), m.Value(fp32, 1, 5, 3)
		m.Node("FullyConnected", []int{m.Quantized(x, nonbatch), m.Constant(graph.QCInt8, 0, 3, 4), m.Constant(fp32, 0, 3)}, []int{y})
		return []int{x}, y
	}
}

var rowCases = []rowCase{
	{"function", unaryRows("Sigmoid", []int{1, 5, 4}, []int{1, 5, 4}), []int{1}, 1},
	{"two operands with rows", addRows([]int{1, 5, 4}, []int{5, 1}, []int{1, 5, 4}, false), []int{1, 0}, 1},
	{"rows in other dimensions", addRows([]int{1, 4, 4}, []int{1, 1, 4}, []int{1, 4, 4}, false), []int{1, 2}, none},
	{"constant for all rows", addRows([]int{1, 5, 4}, []int{4}, []int{1, 5, 4}, true), []int{1}, 1},
	{"constant for each row", addRows([]int{1, 5, 4}, []int{5, 4}, []int{1, 5, 4}, true), []int{1}, none},
	{"constant that repeats rows", addRows([]int{1, 5, 4}, []int{2, 1, 1}, []int{2, 5, 4}, true), []int{1}, 1},
	{"product", product, []int{1}, 1},
	{"product of rows", product, []int{2}, none},
	{"scales of each row", quantized(1), []int{1}, 1},
	{"scales of all rows", quantized(2), []int{1}, none},
	{"softmax of a row", unaryRows("Softmax", []int{1, 5, 4}, []int{1, 5, 4}), []int{1}, 1},
	{"softmax of rows", unaryRows("Softmax", []int{1, 1, 4}, []int{1, 1, 4}), []int{2}, none},
	{"inferred size", unaryRows("StaticReshape", []int{1, 5, 4}, []int{5, 2, 2}, reshape(0, 2, 2)), []int{1}, 0},
	{"fixed sizes", unaryRows("StaticReshape", []int{1, 5, 4}, []int{5, 2, 2}, reshape(5, 2, 2)), []int{1}, none},
	{"other rows", unaryRows("StaticReshape", []int{1, 5, 4}, []int{10, 2}, reshape(0, 2)), []int{1}, 0},
	{"inner transpose", unaryRows("StaticTranspose", []int{1, 5, 2, 3}, []int{1, 5, 3, 2}, transpose(0, 1, 3, 2)), []int{1}, 1},
	{"transpose of rows", unaryRows("StaticTranspose", []int{1, 5, 2, 3}, []int{1, 2, 5, 3}, transpose(0, 2, 1, 3)), []int{1}, 2},
	{"slice of rows", unaryRows("StaticSlice", []int{1, 5, 4}, []int{1, 2, 4}, slice([]int{0, 1, 0}, []int{0, 2, 0})), []int{1}, none},
	{"slice within rows", unaryRows("StaticSlice", []int{1, 5, 4}, []int{1, 5, 2}, slice([]int{0, 0, 1}, []int{0, 0, 2})), []int{1}, 1},
}

// TestRows compares the rows of results with those of the table.
func TestRows(t *testing.T) {
	for _, c := range rowCases {
		m := graphtest.NewMaker(1)
		in, out := c.make(m)
		g := m.Done(out)
		if !slices.Equal(g.Args[:g.Inputs], in) {
			t.Fatalf("%s: inputs %v, want %v", c.name, g.Args[:g.Inputs], in)
		}
		args := make([]*tensor.Tensor, len(g.Args))
		for i, v := range g.Args {
			args[i] = tensor.Make(tensor.Float32, g.Values[v].Shape.Dims(), nil, tensor.DynamicBound)
		}
		got, err := g.Rows(g.Values[in[0]].Shape.Dim[c.rows[0]], graph.NewArguments(g, nil, nil), args, c.rows)
		if (err == nil) != (c.want != none) || err == nil && !slices.Equal(got, []int{c.want}) {
			t.Errorf("%s: got %v, %v, want %d", c.name, got, err, c.want)
		}
	}
}
