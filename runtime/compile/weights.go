package compile

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// minShared is the size of the smallest constants that are outside of payloads, or of the program: a segment and its name take some
// bytes, too.
const minShared = 512

// share finds the weights that several payloads have: they are named data of the program, stored once. Payloads that are kept
// may have named some of them before.
func (w *writer) share() {
	count := make(map[string]int)
	w.weights, w.known = make(map[string]int), make(map[string]bool)
	from := &data{w.options.Named, w.spec.Named}
	w.eachWeight(func(x *lowering.Weight) {
		if b, ok := from.Named(x.Key); ok && !w.lost[x.Key] {
			w.known[x.Key] = bytes.Equal(b, x.Data)
			return
		}
		switch count[x.Key]++; {
		case len(x.Data) < minShared:
		case w.external != nil:
			w.external.add(x.Key, x.Data, nil)
		case count[x.Key] == 2:
			w.weights[x.Key] = w.payload(x.Data)
		}
	})
}

// eachWeight calls do for the weights of all regions and quantized payloads, in the order of the file.
func (w *writer) eachWeight(do func(*lowering.Weight)) {
	each := func(r *lowering.Written) {
		for i := range r.Weights {
			do(&r.Weights[i])
		}
	}
	for _, low := range w.lowered {
		if low == nil {
			continue
		}
		for _, r := range low.Regions {
			each(r)
		}
	}
	places := slices.Collect(maps.Keys(w.quantized))
	sort.Slice(places, func(i, k int) bool {
		a, b := places[i], places[k]
		return cmp.Or(a.method-b.method, a.delegate-b.delegate) < 0
	})
	for _, p := range places {
		each(w.quantized[p].Written)
	}
}

// encoded returns the payload of a region.
func (w *writer) encoded(r *lowering.Written) tree.Pieces {
	return r.Encode(func(key string) bool { return w.isShared(key) })
}

func (w *writer) isShared(key string) bool {
	_, ok := w.weights[key]
	return ok || w.known[key] || w.external != nil && w.external.known[key]
}

// nameWeights adds the shared weights to the named data.
func (w *writer) nameWeights(root *tree.Node) {
	list := nodes(root, "named_data")
	for _, key := range slices.Sorted(maps.Keys(w.weights)) {
		list = append(list, tree.New("NamedData").With("key", key).With("segment_index", tree.Scalar(w.weights[key])))
	}
	if list != nil {
		root.Fields["named_data"] = list
	}
}

// payload returns the segment of a payload. Equal ones share it.
func (w *writer) payload(data ...[]byte) int {
	var key digest
	if len(data) == 1 {
		key = w.constants.digest(data[0])
	} else {
		key = w.constants.hash(data)
	}
	to, ok := w.byBytes[key]
	if !ok {
		to = len(w.segments)
		w.segments = append(w.segments, data)
		w.byBytes[key] = to
	}
	return to
}
