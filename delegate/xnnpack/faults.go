package xnnpack

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/hal/cpu"
)

// Versions of the library compute some nodes wrongly on some processors. Such graphs run on the Go
// engine. TestRows and TestElements compare both engines on the nodes of this table.

// kernelFault is a fault of the kernels that a version of the library selects on some processors.
type kernelFault struct {
	build    string // see xnn.Soname; "" for every version
	selected func(cpu.Hardware) bool
	// hits reports whether the node may be computed wrongly, at the given shapes or, if vary is set, at
	// other sizes.
	hits  func(g *graph, n *node, s []shape, vary bool) bool
	nodes string // what is computed wrongly, for messages
}

// kernelFaults are known from upstream's corrections in 2025, and from these tests.
var kernelFaults = []kernelFault{{
	// GCC removes the stores of the unpacked weights, since it does not know that a tile is loaded from
	// them.
	build: debianBuild, selected: usesTiles,
	hits:  func(g *graph, n *node, _ []shape, _ bool) bool { return g.filterOf(n) == qcint4 },
	nodes: "products with 4-bit weights",
}, {
	// The kernels compute 14 rows, and read as many scales; only 10 are stored behind the last row.
	build: debianBuild, selected: func(h cpu.Hardware) bool { return h.GFNI && h.AVX512VNNI && !h.Zen4 },
	hits: func(g *graph, n *node, s []shape, vary bool) bool {
		rows := s[n.In[0]].numel() / max(1, s[n.In[0]].last())
		return g.filterOf(n) == qbint4 && (vary || rows > 1 && rows%14 > 0 && rows%14 < 4)
	},
	nodes: "products with 4-bit weights in groups",
}, {
	// The pointer to a single pixel in the last tile is not advanced beyond 64 channels.
	build: debianBuild, selected: usesTiles,
	hits: func(g *graph, n *node, s []shape, vary bool) bool {
		transposed := n.Type.tag == tagConvTranspose2d
		if f := g.filterOf(n); f != qint8 && f != qcint8 || n.Type.tag != tagConv2d && !transposed {
			return false
		}
		w, pixels := n.window(), s[n.Out[0]].dim[1]*s[n.Out[0]].dim[2]
		if w.areInputPixels() && !transposed && g.Values[n.In[0]].Datatype != qdint8 {
			return false // another kernel
		}
		byPhase := transposed && w.strideH*w.strideW > 1
		return w.groupIn > 64 && (vary || byPhase || pixels > 16 && pixels%16 == 1)
	},
	nodes: "8-bit convolutions of more than 64 channels",
}, {
	// Sums are of half precision, whose errors add up over the layers of a model. Debian's version also stores
	// half of 64 output channels in the wrong place.
	selected: func(h cpu.Hardware) bool { return h.AVX512FP16 },
	hits: func(g *graph, n *node, _ []shape, _ bool) bool {
		return multiplies(n) && g.Values[n.Out[0]].Datatype == fp16 && g.Values[n.In[0]].Datatype == fp16
	},
	nodes: "products in half precision",
}, {
	// Of 17 to 31 elements at the end of a row with one slope, those from the 17th on are wrong.
	build: debianBuild, selected: func(h cpu.Hardware) bool { return h.AVX512FP16 },
	hits: func(g *graph, n *node, _ []shape, _ bool) bool {
		return n.Type.name == "PReLU" && g.Values[n.Out[0]].Datatype == fp16
	},
	nodes: "PReLU in half precision",
}, {
	// Roots of negative numbers are -0.
	build: debianBuild, selected: func(cpu.Hardware) bool { return runtime.GOARCH == "amd64" },
	hits: func(g *graph, n *node, _ []shape, _ bool) bool {
		return n.Type.name == "SquareRoot" && g.Values[n.Out[0]].Datatype == fp16
	},
	nodes: "square roots in half precision",
}}

// multiplies reports whether the node multiplies matrices or windows by a filter.
func multiplies(n *node) bool {
	switch n.Type.tag {
	case tagFullyConnected, tagBatchMatrixMultiply, tagConv2d, tagConvTranspose2d:
		return true
	}
	return false
}

func usesTiles(h cpu.Hardware) bool { return h.AMXInt8 }

// debianBuild is the build of Debian's version, see xnn.Soname.
const debianBuild = "4ea82e595b36"

// filterOf returns the datatype of the filter of a convolution or a fully connected node.
func (g *graph) filterOf(n *node) datatype {
	if len(n.In) < 2 || n.In[1] == none {
		return 0
	}
	return g.Values[n.In[1]].Datatype
}

// on reports whether a version of the library has the fault on this processor. An unknown version, nil,
// is assumed to be Debian's.
func (f *kernelFault) on(lib *xnn.Soname) bool {
	return (f.build == "" || lib == nil || lib.Build == f.build) && f.selected(cpu.ReadHardware())
}

// wrongly is how messages about faults end.
const wrongly = " wrongly on this processor"

// miscomputed returns what a version of the library computes wrongly in the graph, or "".
func miscomputed(g *graph, lib *xnn.Soname, s []shape, vary bool) string {
	for i := range kernelFaults {
		if f := &kernelFaults[i]; f.on(lib) {
			for k := range g.Nodes {
				if n := &g.Nodes[k]; f.hits(g, n, s, vary) {
					return fmt.Sprintf("%s: the library computes %s%s", n.place(), f.nodes, wrongly)
				}
			}
		}
	}
	return ""
}

// describeFaults returns what a version of the library computes wrongly, or "".
func describeFaults(lib *xnn.Soname) string {
	var nodes []string
	for i := range kernelFaults {
		if f := &kernelFaults[i]; f.on(lib) {
			nodes = append(nodes, f.nodes)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	return "; in Go, because it computes them" + wrongly + ": " + strings.Join(nodes, ", ")
}
