// Package plan places storages in one arena so that those alive at the same time
// do not overlap, and checks plans made elsewhere. It is pure: intervals and sizes
// in, offsets out.
package plan

import (
	"cmp"
	"slices"
)

// Alignment of every offset, in bytes: that of the exporter's own plans, and enough
// for every element type.
const Alignment = 16

// Item is a storage to place: Bytes bytes that matter during steps First to Last,
// inclusive.
type Item struct {
	Bytes       int64
	First, Last int
}

func (a Item) overlaps(b Item) bool { return a.First <= b.Last && b.First <= a.Last }

// Layout is a placement of items.
type Layout struct {
	Offsets []int64 // one per item
	Size    int64   // of the arena
	Order   string  // the order of placement that gave it
}

// order is one order in which to place items; before compares two of them.
type order struct {
	name   string
	before func(a, b Item) int
}

func length(a Item) int { return a.Last - a.First }

var orders = []order{
	{"size", func(a, b Item) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(length(b), length(a)))
	}},
	{"lifetime", func(a, b Item) int {
		return cmp.Or(cmp.Compare(length(b), length(a)), cmp.Compare(b.Bytes, a.Bytes))
	}},
	{"area", func(a, b Item) int {
		return cmp.Compare(float64(b.Bytes)*float64(length(b)+1), float64(a.Bytes)*float64(length(a)+1))
	}},
	{"start", func(a, b Item) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.Bytes, a.Bytes)) }},
}

// maxQuadratic is the number of items above which packing, which is quadratic, is
// not tried: no exporter writes so many.
const maxQuadratic = 8192

// maxWork bounds the comparisons of all attempts to pack together.
const maxWork = 1 << 26

// maxRepairs bounds the attempts to mend one order.
const maxRepairs = 16

// Pack places items by each of several orders, each at the lowest gap that is free
// throughout its life, and returns the smallest result. An order is mended by
// placing the item that ends highest earlier, as long as work allows.
func Pack(items []Item) Layout {
	if len(items) > maxQuadratic {
		return Naive(items)
	}
	best := Layout{Size: -1}
	bound := LowerBound(items)
	work := 0
	for _, o := range orders {
		seq := o.sorted(items)
		for range maxRepairs {
			l, top := place(items, seq)
			if best.Size < 0 || l.Size < best.Size {
				best = l
				best.Order = o.name
			}
			if work += len(items) * len(items); best.Size == bound || work > maxWork {
				return best
			}
			promote(seq, top)
		}
	}
	return best
}

func (o order) sorted(items []Item) []int {
	seq := make([]int, len(items))
	for i := range seq {
		seq[i] = i
	}
	slices.SortStableFunc(seq, func(a, b int) int { return o.before(items[a], items[b]) })
	return seq
}

// promote moves the entry at index i half way to the front.
func promote(seq []int, i int) {
	v := seq[i]
	copy(seq[i/2+1:i+1], seq[i/2:i])
	seq[i/2] = v
}

// Naive places every item after the one before it.
func Naive(items []Item) Layout {
	l := Layout{Offsets: make([]int64, len(items)), Order: "naive"}
	for i, it := range items {
		l.Offsets[i] = l.Size
		l.Size += align(it.Bytes)
	}
	return l
}

func align(n int64) int64 { return (n + Alignment - 1) &^ (Alignment - 1) }

// place puts the items down in the order of seq; top is the index in seq of the one
// that ends highest.
func place(items []Item, seq []int) (l Layout, top int) {
	l.Offsets = make([]int64, len(items))
	placed := make([]int, 0, len(items)) // by offset
	for n, i := range seq {
		at := lowestGap(items, l.Offsets, placed, items[i])
		l.Offsets[i] = at
		if end := at + align(items[i].Bytes); end > l.Size {
			l.Size, top = end, n
		}
		pos, _ := slices.BinarySearchFunc(placed, at, func(p int, at int64) int { return cmp.Compare(l.Offsets[p], at) })
		placed = slices.Insert(placed, pos, i)
	}
	return l, top
}

// lowestGap finds the lowest offset at which it fits between the placed items that
// are alive with it; placed is sorted by offset.
func lowestGap(items []Item, offsets []int64, placed []int, it Item) int64 {
	at := int64(0)
	if it.Bytes == 0 {
		return 0
	}
	for _, p := range placed {
		if items[p].Bytes == 0 || !items[p].overlaps(it) {
			continue
		}
		if at+align(it.Bytes) <= offsets[p] {
			return at
		}
		at = max(at, offsets[p]+align(items[p].Bytes))
	}
	return at
}

// LowerBound is the most bytes alive at one step: no plan is smaller.
func LowerBound(items []Item) int64 {
	type event struct {
		step  int
		bytes int64
	}
	events := make([]event, 0, 2*len(items))
	for _, it := range items {
		if it.Last >= it.First {
			events = append(events, event{it.First, align(it.Bytes)}, event{it.Last + 1, -align(it.Bytes)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.bytes, b.bytes)) })
	var now, peak int64
	for _, e := range events {
		now += e.bytes
		peak = max(peak, now)
	}
	return peak
}
