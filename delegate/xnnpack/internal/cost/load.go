package cost

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// class is a kind of node. The nodes of a class take the same time per unit of what a term counts.
type class uint8

// The classes. Those with a width are of elements with so many bits.
const (
	classGraph        class = iota // of a graph: starts are graphs, rows nodes
	classWeights                   // bytes of weights, of graphs that have more than a cache
	classProduct32                 // fully connected nodes and convolutions of one pixel
	classWindow32                  // convolutions with larger windows
	classGroups32                  // grouped convolutions
	classProduct16                 // of 16-bit numbers, in the library
	classNarrow32                  // fewer columns than a tile, in the library
	classProduct8                  // of quantized inputs
	classDynamic8                  // of dynamically quantized inputs
	classDynamic4                  // the same, with 4-bit weights
	classBatch                     // products of two variable matrices
	classDepthwise32               // depthwise convolutions
	classDepthwise8                //
	classTransposed32              // transposed convolutions
	classTransposed8               //
	classPool32                    // pools with windows
	classPool8                     //
	classMean                      // global average pools
	classSoftmax                   //
	classResize                    // bilinear
	classCopy32                    // moves of elements as they are, and functions as fast as these
	classCopy8                     //
	classBinary32                  // functions of two operands
	classBinary8                   //
	classFunction32                // sigmoid and the like
	classLogarithm                 // functions that the library computes one by one
	classTable8                    // functions of bytes
	classQuantize                  // floats to bytes
	classQuantizeRows              // floats to bytes with a scale per row
	classConvert                   // bytes or 16-bit numbers to floats, and back
	classTranspose32               //
	classTranspose8                //
	classes
)

// term is what a part of a node's time is proportional to.
type term uint8

// The terms.
const (
	termStart   term = iota // nodes
	termRow                 // elements that are computed one after the other, such as the output pixels of a tile
	termTap                 // elements or rows of a window that are addressed one by one
	termWork                // MACs, with rows and channels rounded up to tiles
	termElement             // of the output
	termWeight              // elements of the filter; matrices that are transposed; elements without vectors
	terms
)

// amounts are the amounts of a node's terms.
type amounts [terms]float64

// RateTable are times in nanoseconds, on one thread.
type RateTable [classes]amounts

// Load is what the time of a graph depends on: the sums of its nodes' amounts, by class.
type Load RateTable

// Nanoseconds returns the time of a load.
func (l *Load) Nanoseconds(r *RateTable) (sum float64) {
	for c := range l {
		for t, n := range l[c] {
			sum += n * r[c][t]
		}
	}
	return min(sum, float64(Never/2))
}

// tile is how many columns and terms of sums a product computes at once. Fewer take as long.
type tile struct{ columns, depth int }

// EngineRates are the rates of one engine with one instruction set.
type EngineRates struct {
	Rates         RateTable
	floats, bytes tile
}

// LoadOf returns the load of a run of a graph on an engine, as the engine runs it: fused. share is the part of the elements
// that inputs with varying sizes have.
func LoadOf(g *graph.Graph, s []graph.Shape, r *EngineRates, engine int, varies []bool, share float64) *Load {
	c := counter{Graph: g, shapes: s, floats: r.floats, bytes: r.bytes, engine: engine, part: make([]float64, len(g.Values))}
	for v := range c.part {
		c.part[v] = 1
	}
	for i, v := range g.Args[:g.Inputs] {
		if varies[i] {
			c.part[v] = share
		}
	}
	c.load[classGraph][termStart], c.load[classGraph][termRow] = 1, float64(len(c.Nodes))
	for i := range c.Nodes {
		c.add(&c.Nodes[i])
	}
	if c.weights > nearWeights {
		c.load[classWeights][termWeight] = c.weights
	}
	return &c.load
}

// NodeTime returns the time of a node in the Go engine, in nanoseconds.
func NodeTime(g *graph.Graph, s []graph.Shape, r *EngineRates, n *graph.Node) float64 {
	c := counter{Graph: g, shapes: s, floats: r.floats, bytes: r.bytes, engine: ByGo}
	var l Load
	kind, a := c.amounts(n)
	l[classGraph][termRow], l[kind] = 1, a
	return l.Nanoseconds(&r.Rates)
}

// counter sums up the amounts of nodes.
type counter struct {
	*graph.Graph
	shapes        []graph.Shape
	floats, bytes tile
	engine        int
	part          []float64 // by value: of its elements
	load          Load
	weights       float64 // bytes
}

// nearWeights is the size of the cache of a processor's core.
const nearWeights = 1 << 20

// add adds a node. Nodes are added in order, since it also sets the part of their outputs.
func (c *counter) add(n *graph.Node) {
	part := 1.0
	for _, v := range n.In {
		if v != graph.None {
			part = min(part, c.part[v])
		}
	}
	for _, v := range n.Out {
		c.part[v] = part
	}
	kind, a := c.amounts(n)
	c.sum(kind, a, part)
	if len(n.In) > 1 && kind != classDepthwise32 && kind != classDepthwise8 {
		c.weights += a[termWeight] * float64(c.bits(n.In[1])) / 8
	}
	if c.engine != ByGo {
		return
	}
	if n.Then != nil {
		c.sum(classOf(n.Then.Type.Tag), amounts{termElement: float64(c.shapes[n.Out[0]].Numel())}, part)
	}
	if c.bits(n.In[0]) == 16 {
		c.sum(classConvert, amounts{termElement: float64(c.shapes[n.In[0]].Numel() + c.shapes[n.Out[0]].Numel())}, part)
	}
}

// sum adds a part of amounts of a class.
func (c *counter) sum(kind class, a amounts, part float64) {
	c.load[kind][termStart] += a[termStart]
	for t := termStart + 1; t < terms; t++ {
		c.load[kind][t] += part * a[t]
	}
}

func (c *counter) bits(v int) int { return c.Values[v].Datatype.Info().Bits }

// amounts returns a node's class and amounts.
func (c *counter) amounts(n *graph.Node) (class, amounts) {
	switch {
	case n.Type.Convolution || n.Type.Tag == graph.TagFullyConnected:
		return c.product(n)
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		return classBatch, c.batchProduct(n)
	}
	kind, short := classOf(n.Type.Tag), min(c.bits(n.In[0]), c.bits(n.Out[0])) == 8
	if n.Type.Tag == graph.TagConvert {
		kind = c.conversion(n)
	} else if short {
		kind = ofBytes[kind]
	}
	return kind, c.elements(n, kind)
}
