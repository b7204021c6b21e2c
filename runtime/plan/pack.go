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

// order is one order in which to place items: by descending keys. peak is the most
// bytes alive at any time of the item's life.
type order struct {
	name string
	keys func(it Item, peak int64) [2]float64
}

var orders = []order{
	{"peak", func(it Item, peak int64) [2]float64 { return [2]float64{float64(peak), it.length()} }},
	{"size", func(it Item, _ int64) [2]float64 { return [2]float64{float64(it.Bytes), it.length()} }},
	{"start", func(it Item, _ int64) [2]float64 { return [2]float64{-float64(it.First), float64(it.Bytes)} }},
	{"lifetime", func(it Item, _ int64) [2]float64 { return [2]float64{it.length(), float64(it.Bytes)} }},
	{"area", func(it Item, _ int64) [2]float64 { return [2]float64{float64(it.Bytes) * it.length(), 0} }},
}

func (a Item) length() float64 { return float64(a.Last - a.First + 1) }

// MaxItems is the number of items above which packing and verifying, which are
// quadratic, are not tried: no exporter writes so many.
const MaxItems = 8192

// maxWork bounds the comparisons of all attempts to pack together: some 20 ms.
const maxWork = 1 << 24

// maxRepairs bounds the attempts to mend one order.
const maxRepairs = 48

// Pack places items by each of several orders, each at the lowest gap that is free
// throughout its life, and returns the smallest result. An order is mended by
// placing the item that ends highest earlier, as long as work allows.
func Pack(items []Item) Layout {
	if len(items) > MaxItems {
		return naive(items)
	}
	best := Layout{Size: -1}
	peaks := peaks(items)
	goal := slices.Max(append(peaks, 0))
	goal += goal / 128 // nobody misses less than a percent
	work := 0
	for _, o := range orders {
		seq := o.sequence(items, peaks)
		for range maxRepairs {
			l, top := place(items, seq)
			if best.Size < 0 || l.Size < best.Size {
				best = l
				best.Order = o.name
			}
			if work += len(items) * len(items); best.Size <= goal || work > maxWork {
				return best
			}
			promote(seq, top)
		}
	}
	return best
}

func (o order) sequence(items []Item, peaks []int64) []int {
	seq := make([]int, len(items))
	keys := make([][2]float64, len(items))
	for i, it := range items {
		seq[i], keys[i] = i, o.keys(it, peaks[i])
	}
	slices.SortStableFunc(seq, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[b][0], keys[a][0]), cmp.Compare(keys[b][1], keys[a][1]))
	})
	return seq
}

// promote moves the entry at index i half way to the front.
func promote(seq []int, i int) {
	v := seq[i]
	copy(seq[i/2+1:i+1], seq[i/2:i])
	seq[i/2] = v
}

// naive places every item after the one before it.
func naive(items []Item) Layout {
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
	_, live := profile(items)
	return slices.Max(append(live, 0))
}

// profile gives the steps at which what is alive changes, in order, and the bytes
// alive from there on.
func profile(items []Item) (steps []int, live []int64) {
	type event struct {
		step  int
		bytes int64
	}
	var events []event
	for _, it := range items {
		if it.Last >= it.First {
			events = append(events, event{it.First, align(it.Bytes)}, event{it.Last + 1, -align(it.Bytes)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.step, b.step) })
	var now int64
	for i, e := range events {
		now += e.bytes
		if i+1 == len(events) || events[i+1].step != e.step {
			steps, live = append(steps, e.step), append(live, now)
		}
	}
	return steps, live
}

// peaks gives for each item the most bytes alive at any step of its life.
func peaks(items []Item) []int64 {
	steps, live := profile(items)
	p := make([]int64, len(items))
	for i, it := range items {
		first, _ := slices.BinarySearch(steps, it.First)
		for n := first; n < len(steps) && steps[n] <= it.Last; n++ {
			p[i] = max(p[i], live[n])
		}
	}
	return p
}
