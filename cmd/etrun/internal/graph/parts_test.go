package graph

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/weight"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

func histogramOf(t tensor.DType, data []byte) *Histogram {
	return histogram(weight.New("", t, []int{len(data) / t.Size()}, nil, data, nil), false)
}

func TestHistogram(t *testing.T) {
	for _, tt := range []struct {
		name     string
		values   []float32
		min, max float64
		mean     float64
		zeros    int
		special  int
	}{
		{"numbers", []float32{1, 2, 3, 0}, 0, 3, 1.5, 1, 0},
		{"one value", []float32{7, 7}, 7, 7, 7, 0, 0},
		{"not finite", []float32{float32(math.NaN()), float32(math.Inf(1)), -2}, -2, -2, -2, 0, 2},
		{"none finite", []float32{float32(math.NaN())}, 0, 0, 0, 0, 1},
		{"huge", []float32{math.MaxFloat32, -math.MaxFloat32}, -math.MaxFloat32, math.MaxFloat32, 0, 0, 0},
	} {
		h := histogramOf(tensor.Float32, tensor.BytesOf(tt.values))
		if h.Min != tt.min || h.Max != tt.max || h.Mean != tt.mean || h.Zeros != tt.zeros || h.Special != tt.special {
			t.Errorf("%s: got %+v", tt.name, h)
		}
		sum := 0
		for _, n := range h.Bins {
			sum += n
		}
		if sum != h.Count || h.Count+h.Special != len(tt.values) {
			t.Errorf("%s: %d in the bins, %d counted, %d special, %d elements", tt.name, sum, h.Count, h.Special, len(tt.values))
		}
		if _, err := json.Marshal(h); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	doubles := histogramOf(tensor.Float64, tensor.BytesOf([]float64{math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64}))
	if _, err := json.Marshal(doubles); err != nil {
		t.Error(err)
	}
}

// A large constant is sampled over its length, and its bytes need not be aligned.
func TestHistogramOfManyElements(t *testing.T) {
	values := make([]float32, 1<<20)
	for i := range values {
		values[i] = float32(i)
	}
	data := append([]byte{0}, tensor.BytesOf(values)...)[1:]
	h := histogramOf(tensor.Float32, data)
	if h.Count != sampled || h.Min != 0 || h.Max < 0.99*(1<<20) || math.Abs(h.Mean/(1<<19)-1) > 0.01 {
		t.Errorf("got %+v", h)
	}
	for i, n := range h.Bins {
		if n < sampled/bins/2 || n > 2*sampled/bins {
			t.Errorf("bin %d: %d of %d", i, n, sampled)
		}
	}
}

func rows(names ...string) (list []profile.Row) {
	for i, name := range names {
		list = append(list, profile.Row{Kind: "node", Name: name, Node: i, Median: time.Duration(i + 1)})
	}
	return append(list, profile.Row{Kind: "outside", Name: "outside nodes", Node: -1})
}

// TestMatchNodes maps what engines measure to nodes: all of them, merged ones, and those of the library, which has more.
func TestMatchNodes(t *testing.T) {
	nodes := []string{"StaticTranspose", "Conv2d", "DepthwiseConv2d", "Add", "FullyConnected"}
	for _, tt := range []struct {
		name  string
		parts []profile.Row
		want  []int
	}{
		{"the same", rows(nodes...), []int{0, 1, 2, 3, 4, -1}},
		{"merged", rows("StaticTranspose", "Conv2d", "DepthwiseConv2d", "FullyConnected"), []int{0, 1, 2, 4, -1}},
		{"libXNNPACK", rows("Transpose (ND, X32) Transpose", "Convolution (NHWC, F32) IGEMM", "Convolution (NHWC, F32) DWConv",
			"Binary Elementwise (ND)", "Fully Connected (NC, F32) GEMM"), []int{0, 1, 2, 3, 4, -1}},
		{"a further operation", rows("Transpose (ND, X32) Transpose", "Convolution (NHWC, F32) IGEMM", "Convolution (NHWC, F32) DWConv",
			"Copy (NC, X32)", "Binary Elementwise (ND)", "Fully Connected (NC, F32) GEMM"), []int{0, 1, 2, -1, 3, 4, -1}},
	} {
		if got := MatchNodes(tt.parts, nodes); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCompare(t *testing.T) {
	count := func(p *Program) (changed, only int) {
		for _, m := range p.Methods {
			c, o := m.Marks()
			changed, only = changed+c, only+o
		}
		return changed, only
	}
	a, b := describe(t, "digits/portable.pte", off...), describe(t, "digits/portable.pte", off...)
	Compare(a, b)
	if c, o := count(a); c+o > 0 {
		t.Errorf("equal programs: %d changed, %d only in one", c, o)
	}
	b = describe(t, "digits/xnnpack.pte", off...)
	Compare(a, b)
	first := b.Methods[0].Nodes[slices.IndexFunc(b.Methods[0].Nodes, func(n Node) bool { return n.Name == "DepthwiseConv2d" })]
	if first.Mark != markChanged || first.Peer != "0" {
		t.Errorf("the first convolution inside: %q, %q, want the counterpart 0", first.Mark, first.Peer)
	}
	for _, m := range b.Methods {
		for i := range m.Nodes {
			if n := &m.Nodes[i]; (n.Mark == markOnly) != (n.Peer == "") {
				t.Errorf("node %s: %q with the counterpart %q", n.ID, n.Mark, n.Peer)
			}
		}
	}
}

// One changed constant changes the nodes that read it, and no other.
func TestCompareConstants(t *testing.T) {
	a, b := describe(t, "digits/xnnpack.pte", off...), describe(t, "digits/xnnpack.pte", off...)
	b.Constants[0].sum++
	Compare(a, b)
	for i := range b.Methods[0].Nodes {
		n := &b.Methods[0].Nodes[i]
		reads := slices.ContainsFunc(n.Constants, func(u Use) bool { return u.At == 0 })
		if (n.Mark == markChanged) != reads {
			t.Errorf("node %s: mark %q, reads it: %v", n.ID, n.Mark, reads)
		}
	}
}

func TestCycles(t *testing.T) {
	m := describe(t, "ethosu/programs/digits.pte", off...).Methods[0]
	inner := 0
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Kind == kindInner {
			if inner++; n.Cycles <= 0 || n.Bytes <= 0 {
				t.Errorf("%s: %v cycles, %d bytes", n.ID, n.Cycles, n.Bytes)
			}
		}
	}
	if inner != 5 {
		t.Errorf("%d operations", inner)
	}
}

func TestDiffers(t *testing.T) {
	p := describe(t, "digits/xnnpack.pte", off...)
	p.Differs("forward", 0, 0, 3, 0.5)
	p.Differs("forward", 0, 0, 3, 0.25)
	p.Differs("forward", 0, 0, -1, math.Inf(1))
	p.Differs("forward", 0, 7, 3, 1)
	p.Differs("forward", 0, 0, 70, 1)
	for i := range p.Methods[0].Nodes {
		n := &p.Methods[0].Nodes[i]
		want := map[string]float64{"0": math.MaxFloat64, "0.3": 0.5}[n.ID]
		if n.Error == nil && want != 0 || n.Error != nil && *n.Error != want {
			t.Errorf("node %s: %v, want %v", n.ID, n.Error, want)
		}
	}
}

// Names of a file end no script.
func TestElementEscapes(t *testing.T) {
	p := &Program{Name: "</script><b>", Constants: []Constant{}, Methods: []*Method{{Name: "</script>", Nodes: []Node{}, Sheets: []Sheet{}}}}
	text, err := Element([]*Program{p, p}, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(text, "</script>") != 1 || strings.Contains(text, "<b>") {
		t.Error(text)
	}
}

// FuzzGraph describes damaged programs: whatever loads, or does not, has a graph that the page can draw.
func FuzzGraph(f *testing.F) {
	var files [][]byte
	for _, pattern := range []string{"pte/*.pte", "digits/*.pte", "ethosu/programs/*.pte"} {
		paths, _ := filepath.Glob(filepath.Join("../../../../testdata", pattern))
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			files = append(files, data)
		}
	}
	for i := range files {
		for seed := range uint64(20) {
			f.Add(uint(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, file uint, seed uint64) {
		data, _ := ptetest.Mutate(files[file%uint(len(files))], seed, int(seed%4))
		prog, err := etrun.Parse(data, etrun.WithDelegates(all.Backends()...), etrun.WithMaxMemory(64<<20), etrun.WithConstants())
		if err != nil {
			return
		}
		defer prog.Close()
		p, err := New(t.Context(), prog, "x", false)
		if err != nil {
			t.Fatal(err)
		}
		check(t, p)
	})
}
