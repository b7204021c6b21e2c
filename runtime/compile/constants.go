package compile

import (
	"crypto/sha256"

	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// constantAlign is the alignment of constants in their segment.
const constantAlign = 16

// constants are those of all methods. Equal bytes are stored once.
type constants struct {
	data    []byte
	offsets []uint64
	index   map[digest]int
}

type digest struct {
	sum [sha256.Size]byte
	n   int
}

func digestOf(data []byte) digest { return digest{sha256.Sum256(data), len(data)} }

// newConstants returns an empty table. Index 0 means that a tensor has no constant.
func newConstants() *constants { return &constants{offsets: []uint64{0}, index: make(map[digest]int)} }

// add returns the index of a constant.
func (c *constants) add(data []byte) int {
	key := digestOf(data)
	if i, ok := c.index[key]; ok {
		return i
	}
	c.data = tree.Pad(c.data, constantAlign)
	i := len(c.offsets)
	c.offsets = append(c.offsets, uint64(len(c.data)))
	c.data = append(c.data, data...)
	c.index[key] = i
	return i
}
