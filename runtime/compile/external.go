package compile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// segments are the contents of the segments of a file.
type segments []tree.Pieces

// laidOut returns the table of the segments, and their bytes with what is between them.
func (s segments) laidOut() (list []*tree.Node, tail tree.Pieces) {
	end := 0
	for _, b := range s {
		at := 0 // of an empty one, which needs no place
		size := b.Size()
		if size > 0 {
			at = pack.Align(end, tree.SegmentAlign)
			tail = append(append(tail, make([]byte, at-end)), b...)
			end = at + size
		}
		list = append(list, tree.New("DataSegment").With("offset", tree.Scalar(at)).With("size", tree.Scalar(size)))
	}
	return list, tail
}

// external is the data file of a program: constants of tensors, and filters and biases of payloads.
type external struct {
	segments segments
	entries  []*tree.Node
	digest   func([]byte) digest // which limits the bytes
	known    map[string]bool     // by key
	stored   map[digest]int      // segments
	// named has what is in the data files of the original program, which stay: runtimes refuse keys that are twice. May be nil.
	named func(key string) ([]byte, bool)
}

// add adds a key. Equal bytes are stored once. layout describes the tensor, nil for a constant of a payload.
func (e *external) add(key string, data []byte, layout *tree.Node) {
	if e.known[key] {
		return
	}
	e.known[key] = true
	if e.named != nil {
		if b, ok := e.named(key); ok && bytes.Equal(b, data) {
			return
		}
	}
	sum := e.digest(data)
	at, ok := e.stored[sum]
	if !ok {
		at = len(e.segments)
		e.segments, e.stored[sum] = append(e.segments, tree.Pieces{data}), at
	}
	n := tree.New("data.NamedData").With("key", key).With("segment_index", tree.Scalar(at))
	if layout != nil {
		n.With("tensor_layout", layout)
	}
	e.entries = append(e.entries, n)
}

// tensor stores the bytes of a tensor, and returns the table that names them.
func (e *external) tensor(t *tree.Node, data []byte) *tree.Node {
	layout := tree.New("TensorLayout")
	sum := e.digest(data)
	h := sha256.New()
	for _, field := range []string{"scalar_type", "sizes", "dim_order"} {
		if v, ok := t.Fields[field]; ok {
			layout.With(field, v)
		}
		fmt.Fprintln(h, t.Fields[field])
	}
	h.Write(sum.sum[:])
	key := "constant_" + hex.EncodeToString(h.Sum(nil))
	e.add(key, data, layout)
	return tree.New("ExtraTensorInfo").With("fully_qualified_name", key).With("location", tree.Scalar(1))
}

// file returns the file, nil if it would have no entry.
func (e *external) file() tree.Pieces {
	if e == nil || len(e.entries) == 0 {
		return nil
	}
	list, tail := e.segments.laidOut()
	root := tree.New("FlatTensor").With("version", tree.Scalar(0)).With("segments", list).With("named_data", e.entries)
	return (&tree.File{Format: pte.FormatPTD, Root: root, Segments: tail, Header: 40, Align: tree.SegmentAlign}).Pieces()
}
