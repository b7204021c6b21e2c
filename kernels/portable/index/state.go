package index

import (
	"fmt"
	"math"
	"strconv"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// state is the state of an instruction.
type state struct {
	gather gatherPlan
	row    rowWalk
	adv    advanced
	sort   sorter
	rank   ranker
	fold   fold

	bucket bucketer
	bags   bags

	strides [tensor.MaxRank]int // of the source of a scatter
}

func itoa(n int) string { return strconv.Itoa(n) }

// indices returns the elements of argument i, an integer tensor, in logical order.
func indices(c *kernels.Ctx, a kernels.Args, i int) ([]int64, error) {
	t := a.Tensor(i)
	if !t.DType.IsInt() {
		return nil, kernels.Bad(i, t.DType.String(), "an integer type")
	}
	return operand.In[int64](c, t), nil
}

// checkIndices returns an error for argument i if an index is outside [0, n).
func checkIndices(i int, indices []int64, n int) error {
	for _, v := range indices {
		if uint64(v) >= uint64(n) {
			return kernels.Badf(i, "indices in [0, "+itoa(n)+")", "%d", v)
		}
	}
	return nil
}

// broadcast combines the sizes of two arguments in dst. j is the index of the second one.
func broadcast(dst []int, x, y []int, j int) ([]int, error) {
	dst, ok := strided.Broadcast(append(dst[:0], x...), y)
	if !ok {
		return nil, kernels.Badf(j, fmt.Sprintf("sizes that broadcast with %v", x), "%v", y)
	}
	return dst, nil
}

// product returns the number of elements of a tensor's sizes.
func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// isBounded reports whether sizes have at most a few times the given number of elements. Larger broadcasts are errors,
// since a small file could request any amount of memory.
func isBounded(sizes []int, given int) bool {
	n, ok := tensor.Product(sizes)
	return ok && n <= 1<<12+16*min(given, math.MaxInt>>13)
}

// advanced is the resolved index list of index and index_put.
type advanced struct {
	n       int // indexed dimensions
	dims    [tensor.MaxRank]int
	indices [tensor.MaxRank][]int64
	shapes  [tensor.MaxRank][]int
	counts  [tensor.MaxRank][1]int  // shapes of what masks select
	common  [tensor.MaxRank]int     // sizes that the indices broadcast to
	rank    int                     // of common
	sizes   [2 * tensor.MaxRank]int // of the indexed result
	total   int                     // dimensions of sizes
}

// gatherPlan copies runs of elements between a contiguous tensor, the table, and a dense array: for each outer index o,
// offset and rest, in this order, the run elements of the table from o·stride + offset + rest on.
type gatherPlan struct {
	outer   int
	stride  int
	offsets []int64
	rest    []int64
	run     int

	elem         int
	table, dense []byte
}

// bucketer finds the buckets of values among sorted boundaries: the first boundary that is not below a value or, for
// right, the first above it. As in ATen, NaN is above all boundaries, and a boundary that is NaN is above no value:
// its bucket depends on the search.
type bucketer struct {
	compute tensor.DType // that values and boundaries are compared in
	right   bool
	narrow  bool // the out is int32
	row     int  // values for each row of boundaries; 0 if there is one row for all
	rowSize int  // bytes of a row of boundaries
	values  []byte
	edges   []byte
	out     []byte
}

// rowWalk iterates over an array of indices along dimension d of a contiguous tensor, the table. A row of indices is
// along the last dimension: its element i refers to element base + index·step + i·next of the table.
type rowWalk struct {
	rank       int
	sizes      [tensor.MaxRank]int // of the indices
	strides    [tensor.MaxRank]int // of the table, 0 for d
	step, next int
	n          int // length of a row
	c          *kernels.Ctx

	elem         int
	indices      []int64
	table, dense []byte
}

// bags is aten::_embedding_bag: rows of a table, reduced bag by bag. A bag is a range of indices from one offset to
// the next. Outs are the reduced rows, the bag of each index, the number of rows of each bag, and the index of the
// row of each maximum.
type bags struct {
	mode    int64
	padding int64 // an index that counts for nothing
	dim     int   // of a row
	table   tensor.DType
	compute tensor.DType
	indices []int64
	offsets []int64 // where each bag starts, and the number of indices
	rows    []byte  // of the table
	factors []byte  // of the rows, of the compute type; nil for none
	loaded  []byte  // a row of the compute type for each worker, where the table is of another
	reduced []byte  // of the compute type
	sizes   []int64
	sources []int64 // of maxima
	c       *kernels.Ctx
}

// fold is how a scatter combines elements.
type fold struct {
	how         foldKind
	includeSelf bool // else the first source element replaces that of self
	each        int  // distance of source elements, 0 for a number
}

type foldKind uint8

// ranker finds one element of each row of n elements, by its rank or its frequency.
type ranker struct {
	sorter
	rule rankRule
	kth  int // for ruleKth, from 0
}

// rankRule is the rule of a ranker. Of equal elements it finds the one that PyTorch does, see ties.go.
type rankRule uint8

// sorter orders rows of n elements and returns the first k of each. Elements are converted to keys: unsigned numbers
// in the requested order, with NaN as the greatest value.
type sorter struct {
	dtype      tensor.DType
	n, k       int
	descending bool
	c          *kernels.Ctx
	some       bool // topk: PyTorch's order of equal elements
	sorted     bool // topk: in order

	src, values []byte
	indices     []int64
	// n of each for each worker, for keys of 32 and of 64 bits
	keys32  []uint32
	pairs32 []pair[uint32]
	keys64  []uint64
	pairs64 []pair[uint64]
	floats  []float32
	wide    []int64
	a, b    []uint64 // of radixSort
}
