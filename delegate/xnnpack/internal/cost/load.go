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

// tiles are those of products by the size of their elements.
type tiles struct{ floats, halves, bytes tile }

// EngineRates are the rates of one engine with one instruction set.
type EngineRates struct {
	Rates RateTable
	tiles
}

// counter sums up the amounts of nodes.
type counter struct {
	*graph.Graph
	tiles
	shapes  []graph.Shape
	engine  int
	part    []float64 // by value: of its elements
	load    Load
	weights float64 // bytes
}

// nearWeights is the size of the cache of a processor's core.
const nearWeights = 1 << 20

func (c *counter) bits(v int) int { return c.Values[v].Datatype.Info().Bits }

// Engines, as indices.
const (
	ByLibrary = iota
	ByGo
)
