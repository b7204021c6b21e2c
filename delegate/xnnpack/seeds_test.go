package xnnpack

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// compact removes unused values and renumbers the arguments: inputs, then outputs.
func compact(g *graph.Graph) {
	used := make([]bool, len(g.Values))
	refer := func(list []int) {
		for _, v := range list {
			if v != graph.None {
				used[v] = true
			}
		}
	}
	for i := range g.Nodes {
		refer(g.Nodes[i].In)
		refer(g.Nodes[i].Out)
	}
	to, values := make([]int, len(g.Values)), []graph.Value(nil)
	for v := range g.Values {
		if to[v] = graph.None; used[v] {
			to[v] = len(values)
			values = append(values, g.Values[v])
		}
	}
	for i := range g.Nodes {
		for _, list := range [2][]int{g.Nodes[i].In, g.Nodes[i].Out} {
			for j, v := range list {
				if v != graph.None {
					list[j] = to[v]
				}
			}
		}
	}
	g.Values, g.Args, g.Inputs = values, nil, 0
	for v := range g.Values {
		g.Values[v].Arg, g.Values[v].ID = graph.None, graphtest.EncodedID(v)
	}
	(&graphtest.Maker{Builder: graph.Builder{Graph: g}}).Done()
}

// cutGraph returns a connected subgraph of up to size nodes around a node. Values read from the rest
// become inputs; values read by the rest become outputs.
func cutGraph(g *graph.Graph, r *rand.Rand, around, size int) (part *graph.Graph, ok bool) {
	chosen, order := map[int]bool{around: true}, []int{around}
	producer := make(map[int]int)
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Out {
			producer[v] = i
		}
	}
	for range 8 * size {
		if len(order) >= size {
			break
		}
		k := r.IntN(len(g.Nodes))
		if r.IntN(4) > 0 { // neighbors are close in node order
			k = min(max(order[r.IntN(len(order))]+r.IntN(7)-3, 0), len(g.Nodes)-1)
		}
		if !chosen[k] && touches(g, chosen, k) {
			chosen[k] = true
			order = append(order, k)
		}
	}
	for i := range g.Nodes { // dynamically quantized values cannot be arguments
		if chosen[i] {
			for _, v := range g.Nodes[i].In {
				if p, made := producer[v]; made && g.Values[v].Datatype == graph.QDInt8 {
					chosen[p] = true
				}
			}
		}
	}
	return partOf(g, chosen), true
}

func touches(g *graph.Graph, chosen map[int]bool, i int) bool {
	for k := range chosen {
		for _, v := range g.Nodes[i].In {
			if v != graph.None && !g.Values[v].IsConst() && (slices.Contains(g.Nodes[k].Out, v) || slices.Contains(g.Nodes[k].In, v)) {
				return true
			}
		}
		for _, v := range g.Nodes[i].Out {
			if slices.Contains(g.Nodes[k].In, v) {
				return true
			}
		}
	}
	return false
}

// partOf returns the subgraph of the chosen nodes.
func partOf(g *graph.Graph, chosen map[int]bool) *graph.Graph {
	p := &graph.Graph{Version: g.Version, Values: slices.Clone(g.Values)}
	made, read := make(map[int]bool), make(map[int]bool)
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			read[v] = read[v] || !chosen[i]
		}
		if chosen[i] {
			n := g.Nodes[i]
			n.In, n.Out, n.Params = slices.Clone(n.In), slices.Clone(n.Out), cloneParams(n.Params)
			p.Nodes = append(p.Nodes, n)
			for _, v := range n.Out {
				made[v] = true
			}
		}
	}
	inner := make(map[int]bool)
	for i := range p.Nodes {
		for _, v := range p.Nodes[i].In {
			inner[v] = true
		}
	}
	for v := range p.Values {
		x := &p.Values[v]
		x.Input = !made[v] && !x.IsConst()
		x.Output = made[v] && x.Datatype != graph.QDInt8 && (x.Output || read[v] || !inner[v])
	}
	compact(p)
	return cloneGraph(p)
}

// shrink reduces sizes; settle must be called afterwards.
func (m *mutator) shrink() {
	most := [4][]int{{2000}, {50, 40}, {3, 20, 40}, {2, 9, 9, 20}}
	for v := range m.Graph.Values {
		x := &m.Graph.Values[v]
		if !x.Input {
			continue
		}
		for i := range x.Shape.Dims() {
			limit := 5
			if x.Shape.Rank <= 4 {
				limit = most[x.Shape.Rank-1][i]
			}
			if x.Shape.Dim[i] > limit {
				x.Shape.Dim[i] = 1 + m.R.IntN(limit)
			}
		}
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		switch {
		case n.Type.Tag == graph.TagFullyConnected && m.Graph.Values[n.In[1]].Shape.Rank == 2:
			f := m.Graph.Values[n.In[1]]
			out := n.Flags & graph.FlagTransposeWeights // the dimension of the output channels
			if f.Shape.Dim[out] > 40 {
				f.Shape.Dim[out] = 1 + m.R.IntN(40)
				f.Shape.Dim[1-out] = min(f.Shape.Dim[1-out], 64)
				m.refit(n, 1, f.Datatype, f.Shape.Dims()...)
			}
		case n.Type.Name == "StaticResizeBilinear2D":
			p := graph.Params[graph.ResizeParams](n)
			p.Height, p.Width = min(p.Height, 20), min(p.Width, 20)
		case n.Type.Name == "StaticSlice":
			for j, offset := range graph.Params[graph.SliceParams](n).Offsets {
				graph.Params[graph.SliceParams](n).Offsets[j] = min(offset, 3)
			}
		}
	}
}

// seeds are the graphs to mutate, as payloads with their constants.
type seeds struct {
	payloads [][]byte
	known    map[string]bool // by signature
}

// baseSeeds returns the graphs of this package's tests and of the programs in testdata.
func baseSeeds(tb testing.TB) *seeds {
	s := &seeds{known: make(map[string]bool)}
	for _, list := range [][]graphtest.Sample{graphtest.Samples(1), graphtest.Samples(2)} {
		for _, x := range list {
			s.payloads = append(s.payloads, graphtest.Encode(x.Graph))
		}
	}
	for seed := range uint64(300) {
		if g := graphtest.RandomGraph(seed, 6); len(g.Args) > g.Inputs {
			s.payloads = append(s.payloads, graphtest.Encode(g))
		}
	}
	s.addFolder(tb, "../../testdata")
	return s
}

// addFolder adds the graphs of all programs in a folder and its subfolders, including zip archives.
func (s *seeds) addFolder(tb testing.TB, folder string) {
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".pte", ".bpte":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s.addProgram(data)
		case ".zip":
			s.addArchive(path)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func (s *seeds) addArchive(path string) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return
	}
	defer z.Close()
	for _, f := range z.File {
		if filepath.Ext(f.Name) != ".pte" {
			continue
		}
		if r, err := f.Open(); err == nil {
			if data, err := io.ReadAll(r); err == nil {
				s.addProgram(data)
			}
			r.Close()
		}
	}
}

// anyBytes is named data with arbitrary bytes for unknown keys, where the weights do not matter.
type anyBytes map[string][]byte

var filler = sync.OnceValue(func() []byte { return bytes.Repeat([]byte{0x11, 0x3c, 0xa2, 0x3e}, 1<<24) })

func (a anyBytes) Named(key string) ([]byte, bool) {
	if b, ok := a[key]; ok {
		return b, true
	}
	return filler(), true
}

// addProgram adds parts of the graphs of a program's payloads.
func (s *seeds) addProgram(data []byte) {
	p, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		return
	}
	for _, m := range p.Methods {
		for _, d := range m.Delegates {
			if d.ID == ID {
				s.addPayload(d.Data, anyBytes(p.Named))
			}
		}
	}
}

// addPayload adds small subgraphs around some of the nodes if their signature is new.
func (s *seeds) addPayload(data []byte, named anyBytes) {
	g, err := graphtest.ReadGraph(data, named)
	if err != nil || len(g.Nodes) == 0 || len(g.Values) > 1<<14 {
		return
	}
	r := rand.New(rand.NewPCG(uint64(len(data)), 3))
	for range min(len(g.Nodes), 60) {
		i := r.IntN(len(g.Nodes))
		for _, size := range []int{2, 6} {
			part, ok := cutGraph(g, r, i, size)
			if !ok || len(part.Args) == part.Inputs || s.known[signature(part)] {
				continue
			}
			s.known[signature(part)] = true
			m := &mutator{Maker: &graphtest.Maker{Builder: graph.Builder{Graph: part}, R: r, Lo: -2, Hi: 2}}
			m.shrink()
			m.settle()
			compact(m.Graph)
			if seedBytes(m.Graph) > 1<<18 {
				continue
			}
			if payload := graphtest.Encode(m.Graph); small(payload) {
				s.payloads = append(s.payloads, payload)
			}
		}
	}
}

func seedBytes(g *graph.Graph) (n int) {
	for v := range g.Values {
		n += len(g.Values[v].Data)
	}
	return n
}

// small reports whether a payload is valid and fast to run.
func small(payload []byte) bool {
	g, err := graphtest.ReadGraph(payload, nil)
	if err != nil {
		return false
	}
	shapes, err := g.Repair()
	return err == nil && g.Cost(shapes) < 1e6
}

// signature identifies a graph by its nodes, flags, windows and datatypes.
func signature(g *graph.Graph) string {
	var b strings.Builder
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "%d/%d/%v%v", n.Type.Tag, n.Flags, n.Min > -graph.Inf, n.Max < graph.Inf)
		for _, list := range [2][]int{n.In, n.Out} {
			for _, v := range list {
				if v != graph.None {
					fmt.Fprintf(&b, " %d.%d", g.Values[v].Datatype, v)
				}
			}
		}
		w, dims := n.Geometry(), 0
		if lists := dimLists(n); len(lists) > 0 {
			dims = len(*lists[0])
		}
		fmt.Fprint(&b, w.KernelH, w.KernelW, w.StrideH, w.StrideW, w.DilationH, w.Top, w.Left, w.Bottom, min(w.Groups, 2), dims, ";")
	}
	return b.String()
}

// pick returns one of the graphs or a new random one.
func (s *seeds) pick(r *rand.Rand) *graph.Graph {
	if r.IntN(8) == 0 {
		if g := graphtest.RandomGraph(r.Uint64(), 6); len(g.Args) > g.Inputs {
			return g
		}
	}
	g, err := graphtest.ReadGraph(s.payloads[r.IntN(len(s.payloads))], nil)
	if err != nil {
		panic(err)
	}
	return g
}
