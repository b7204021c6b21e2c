package ir

import (
	"cmp"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Spot is a value's place and size in the file. Values of one spot share their bytes.
type Spot struct {
	arena         int
	offset, bytes int64
}

// SpotOf returns the spot of a tensor with a place.
func SpotOf(t *pte.Tensor) Spot { return Spot{t.Arena, t.Offset, t.NBytes()} }

// Placed reports whether the file has a place in an arena for a tensor.
func Placed(t *pte.Tensor) bool {
	switch t.Storage {
	case pte.Planned, pte.PlannedInit, pte.ExternalPlanned:
		return true
	}
	return false
}

// place is the values of one spot.
type place struct {
	writers []int // those that instructions write, in order of their first write
	// The value whose bytes a call finds there: what the previous call wrote last, or else the first that is
	// read or declared as state; -1 for none.
	carried int
	updated int // the first step that copies a tensor onto it; never, also with jumps
}

// placesOf finds the places of values that are read, written, or declared as state.
func (b *builder) placesOf(acc []access) map[Spot]*place {
	places := make(map[Spot]*place)
	for v := range b.Values {
		if !b.isPlaced(v) || acc[v].write == never && !acc[v].contents && !b.isDeclared(v) {
			continue
		}
		s := SpotOf(b.src.Values[v].Tensor)
		if places[s] == nil {
			places[s] = &place{carried: v, updated: never}
		}
		if acc[v].write != never {
			places[s].writers = append(places[s].writers, v)
		}
	}
	jumps := b.HasJumps()
	if !jumps {
		b.setUpdated(places)
	}
	for _, p := range places {
		slices.SortStableFunc(p.writers, func(a, b int) int { return cmp.Compare(acc[a].write, acc[b].write) })
		b.setCarried(p, acc, jumps)
	}
	return places
}

// setUpdated finds the first copies onto places.
func (b *builder) setUpdated(places map[Spot]*place) {
	for i := range b.Steps {
		s := &b.Steps[i]
		if !s.IsCopy() || !b.isPlaced(s.Args[0]) {
			continue
		}
		if p := places[SpotOf(b.src.Values[s.Args[0]].Tensor)]; p != nil && p.updated == never {
			p.updated = i
		}
	}
}

// setCarried finds the value of a place that the previous call wrote last. With jumps, only what is surely state counts: a loop
// reads what its last round wrote, by steps that come later, too.
func (b *builder) setCarried(p *place, acc []access, jumps bool) {
	for _, w := range slices.Backward(p.writers) {
		if a := acc[w]; !jumps || a.update || a.read <= a.write || b.isDeclared(w) {
			p.carried = w
			return
		}
	}
	if len(p.writers) > 0 {
		p.carried = -1
	}
}

// DeclaresState reports whether the file declares a tensor with a place as state: by its initial contents, or its name.
func DeclaresState(t *pte.Tensor) bool {
	return Placed(t) && (t.Storage != pte.Planned || t.Name != "")
}

// isDeclared is DeclaresState, also for a value whose initial contents another method has.
func (b *builder) isDeclared(v int) bool {
	return DeclaresState(b.src.Values[v].Tensor) || b.links.Data[v] != nil
}

// isPlaced reports whether a value is a tensor of the file with a place.
func (b *builder) isPlaced(v int) bool {
	return v < len(b.src.Values) && b.Values[v].Kind == tensor.KindTensor && Placed(b.src.Values[v].Tensor)
}
