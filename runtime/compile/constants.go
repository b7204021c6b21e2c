package compile

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// constantAlign is the alignment of constants in their segment. Those of largeConstant bytes and more are aligned to cache lines, as
// operators and engines read them where they are.
const (
	constantAlign = 16
	largeConstant = 256
)

// constants are those of all methods. Equal bytes are stored once.
type constants struct {
	data    tree.Pieces
	size    int // of data
	offsets []uint64
	index   map[digest]int
	seen    map[span]digest // slices that were hashed
	left    int64           // bytes that may yet be hashed or stored
	err     error           // the first constant beyond that
}

// digest identifies bytes by their contents, span by their place.
type (
	digest struct {
		sum [sha256.Size]byte
		n   int
	}
	span struct {
		first *byte
		n     int
	}
)

// Files may refer to the same bytes many times, at different lengths. What is hashed or stored is bounded by
// constantReuse times the files' bytes, plus constantSlack.
const (
	constantReuse = 8
	constantSlack = 64 << 20
)

// newConstants returns an empty table for files of this size. Index 0 means that a tensor has no constant.
func newConstants(files int64) *constants {
	left := constantReuse*min(files, math.MaxInt64/(2*constantReuse)) + constantSlack
	return &constants{offsets: []uint64{0}, index: make(map[digest]int), seen: make(map[span]digest), left: left}
}

// add returns the index of a constant.
func (c *constants) add(data []byte) int {
	key := c.digest(data)
	if i, ok := c.index[key]; ok || c.err != nil {
		return i
	}
	align := constantAlign
	if len(data) >= largeConstant {
		align = tensor.Alignment
	}
	at := pack.Align(c.size, align)
	i := len(c.offsets)
	c.offsets = append(c.offsets, uint64(at))
	c.data, c.size = append(c.data, make([]byte, at-c.size), data), at+len(data)
	c.index[key] = i
	return i
}

// digest hashes bytes, each slice once.
func (c *constants) digest(data []byte) (d digest) {
	at := span{n: len(data)}
	if len(data) > 0 {
		at.first = &data[0]
	}
	d, ok := c.seen[at]
	if ok {
		return d
	}
	d = c.hash(tree.Pieces{data})
	c.seen[at] = d
	return d
}

// hash is digest for what is in parts.
func (c *constants) hash(data tree.Pieces) (d digest) {
	d.n = data.Size()
	if c.left -= int64(d.n); c.left < 0 {
		if c.err == nil {
			c.err = fmt.Errorf("constants and payloads are read at too many lengths: %w", pte.ErrLimit)
		}
		return digest{}
	}
	h := sha256.New()
	_, _ = data.WriteTo(h) // hashes do not fail
	h.Sum(d.sum[:0])
	return d
}
