package compile

import (
	"fmt"

	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// readSegments prepares for segments of the result.
func (w *writer) readSegments() error {
	w.bySegment, w.byBytes = make(map[int]int), make(map[digest]int)
	for i, s := range nodes(w.file.Root, "segments") {
		offset, size := scalar(s, "offset"), scalar(s, "size")
		if n := uint64(len(w.file.Tail)); offset > n || size > n-offset {
			return fmt.Errorf("segment %d of %d bytes at %d, the program has %d: %w", i, size, offset, n, pte.ErrFormat)
		}
	}
	return nil
}

// segment returns the number in the result of a segment of the original program.
func (w *writer) segment(i int) int {
	to, ok := w.bySegment[i]
	if !ok {
		to = len(w.segments)
		s := nodes(w.file.Root, "segments")[i]
		offset := scalar(s, "offset")
		w.segments = append(w.segments, tree.Pieces{w.file.Tail[offset : offset+scalar(s, "size")]})
		w.bySegment[i] = to
	}
	return to
}

// program returns the changed program.
func (w *writer) program() tree.Pieces {
	root := copied(w.file.Root)
	root.Fields["execution_plan"] = w.plans
	delete(root.Fields, "constant_buffer")
	delete(root.Fields, "backend_delegate_data")
	delete(root.Fields, "constant_segment")
	// The table is there without any constant, too: runtimes that do not find it read the older form of constants, if they still do.
	root.With("constant_segment", tree.New("SubsegmentOffsets").With("segment_index", tree.Scalar(len(w.segments))).
		With("offsets", tree.Scalars(w.constants.offsets)))
	w.segments = append(w.segments, w.constants.data)
	w.renumber(root, "mutable_data_segments")
	w.renumber(root, "named_data")
	w.nameWeights(root)
	list, tail := w.segments.laidOut()
	root.Fields["segments"] = list
	out := &tree.File{Format: pte.FormatPTE, Root: root, Segments: tail, Header: 32, Align: tree.SegmentAlign}
	out.Complete()
	return out.Pieces()
}

// renumber adjusts the segments that tables name. An absent number is 0.
func (w *writer) renumber(root *tree.Node, field string) {
	var list []*tree.Node
	for _, n := range nodes(root, field) {
		if key, ok := n.Fields["key"].(string); ok && w.lost[key] {
			continue
		}
		n = copied(n)
		if len(nodes(w.file.Root, "segments")) > 0 {
			n.With("segment_index", tree.Scalar(w.segment(int(scalar(n, "segment_index")))))
		}
		list = append(list, n)
	}
	if list != nil || w.lost != nil && root.Fields[field] != nil {
		root.Fields[field] = list
	}
}
