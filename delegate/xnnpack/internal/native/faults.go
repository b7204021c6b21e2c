package native

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
)

// Versions of the library compute some nodes wrongly on some processors. Such graphs run on the Go
// engine. TestRows and TestElements compare both engines on the nodes of this table.

// kernelFault is a fault of the kernels that a version of the library selects on some processors.
type kernelFault struct {
	build    string // see xnn.Soname; "" for every version
	Selected func(cpu.Hardware) bool
	// hits reports whether the node may be computed wrongly, at the given shapes or, if vary is set, at
	// other sizes.
	hits  func(g *graph.Graph, n *graph.Node, s []graph.Shape, vary bool) bool
	nodes string // what is computed wrongly, for messages
}

// debianBuild is the build of Debian's version of the library, see [xnn.Soname].
const debianBuild = "4ea82e595b36"

// usesTiles reports whether Debian's version of the library multiplies bytes in tiles.
func usesTiles(h cpu.Hardware) bool { return h.AMXInt8 }

// kernelFaults are known from upstream's corrections in 2025, and from these tests.
var kernelFaults = []kernelFault{{
	// GCC removes the stores of the unpacked weights, since it does not know that a tile is loaded from
	// them.
	build: debianBuild, Selected: usesTiles,
	hits: func(g *graph.Graph, n *graph.Node, _ []graph.Shape, _ bool) bool {
		return g.FilterOf(n) == graph.QCInt4
	},
	nodes: "products with 4-bit weights",
}, {
	// The kernels compute 14 rows, and read as many scales; only 10 are stored behind the last row.
	build: debianBuild, Selected: func(h cpu.Hardware) bool { return h.GFNI && h.AVX512VNNI && !h.Zen4 },
	hits: func(g *graph.Graph, n *graph.Node, s []graph.Shape, vary bool) bool {
		rows := s[n.In[0]].Numel() / max(1, s[n.In[0]].Last())
		return g.FilterOf(n) == graph.QBInt4 && (vary || rows > 1 && rows%14 > 0 && rows%14 < 4)
	},
	nodes: "products with 4-bit weights in groups",
}, {
	// The pointer to a single pixel in the last tile is not advanced beyond 64 channels.
	build: debianBuild, Selected: usesTiles,
	hits: func(g *graph.Graph, n *graph.Node, s []graph.Shape, vary bool) bool {
		transposed := n.Type.Tag == graph.TagConvTranspose2d
		if f := g.FilterOf(n); f != graph.QInt8 && f != graph.QCInt8 || n.Type.Tag != graph.TagConv2d && !transposed {
			return false
		}
		w, pixels := n.Window(), s[n.Out[0]].Dim[1]*s[n.Out[0]].Dim[2]
		if w.AreInputPixels() && !transposed && g.Values[n.In[0]].Datatype != graph.QDInt8 {
			return false // another kernel
		}
		byPhase := transposed && w.StrideH*w.StrideW > 1
		return w.GroupIn > 64 && (vary || byPhase || pixels > 16 && pixels%16 == 1)
	},
	nodes: "8-bit convolutions of more than 64 channels",
}, {
	// Sums are of half precision, whose errors add up over the layers of a model. Debian's version also stores
	// half of 64 output channels in the wrong place.
	Selected: func(h cpu.Hardware) bool { return h.AVX512FP16 || h.NEONFP16 },
	hits: func(g *graph.Graph, n *graph.Node, _ []graph.Shape, _ bool) bool {
		return multiplies(n) && g.Values[n.Out[0]].Datatype == graph.FP16 && g.Values[n.In[0]].Datatype == graph.FP16
	},
	nodes: "products in half precision",
}, {
	// Elements are multiplied by a scale of half precision: some are rounded to the step beside the right one.
	Selected: func(h cpu.Hardware) bool { return h.NEONFP16 },
	hits: func(g *graph.Graph, n *graph.Node, _ []graph.Shape, _ bool) bool {
		return n.Type.Tag == graph.TagConvert && g.Values[n.In[0]].Datatype == graph.FP16 && g.Values[n.Out[0]].Datatype == graph.QDInt8
	},
	nodes: "quantization of half precision at run time",
}, {
	// Of 17 to 31 elements at the end of a row with one slope, those from the 17th on are wrong.
	build: debianBuild, Selected: func(h cpu.Hardware) bool { return h.AVX512FP16 },
	hits: func(g *graph.Graph, n *graph.Node, _ []graph.Shape, _ bool) bool {
		return n.Type.Name == "PReLU" && g.Values[n.Out[0]].Datatype == graph.FP16
	},
	nodes: "PReLU in half precision",
}, {
	// Roots of negative numbers are -0.
	build: debianBuild, Selected: func(cpu.Hardware) bool { return runtime.GOARCH == "amd64" },
	hits: func(g *graph.Graph, n *graph.Node, _ []graph.Shape, _ bool) bool {
		return n.Type.Name == "SquareRoot" && g.Values[n.Out[0]].Datatype == graph.FP16
	},
	nodes: "square roots in half precision",
}}

// multiplies reports whether the node multiplies matrices or windows by a filter.
func multiplies(n *graph.Node) bool {
	switch n.Type.Tag {
	case graph.TagFullyConnected, graph.TagBatchMatrixMultiply, graph.TagConv2d, graph.TagConvTranspose2d:
		return true
	}
	return false
}

// on reports whether a version of the library has the fault on this processor. An unknown version, nil,
// is assumed to be Debian's.
func (f *kernelFault) on(lib *xnn.Soname) bool {
	return (f.build == "" || lib == nil || lib.Build == f.build) && f.Selected(cpu.ReadHardware())
}

// wrongly is how messages about faults end.
const wrongly = " wrongly on this processor"

// Miscomputed returns what a version of the library computes wrongly in the graph, or "".
func Miscomputed(g *graph.Graph, lib *xnn.Soname, s []graph.Shape, vary bool) string {
	for i := range kernelFaults {
		if f := &kernelFaults[i]; f.on(lib) {
			for k := range g.Nodes {
				if n := &g.Nodes[k]; f.hits(g, n, s, vary) {
					return fmt.Sprintf("%s: the library computes %s%s", n.Location(), f.nodes, wrongly)
				}
			}
		}
	}
	return ""
}

// DescribeFaults returns what a version of the library computes wrongly, or "".
func DescribeFaults(lib *xnn.Soname) string {
	var nodes []string
	for i := range kernelFaults {
		if f := &kernelFaults[i]; f.on(lib) {
			nodes = append(nodes, f.nodes)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	return "; the engine in Go computes what this library computes" + wrongly + ": " + strings.Join(nodes, ", ")
}
