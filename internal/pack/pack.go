// Package pack places items in one arena so that those alive at the same time do not overlap. It is
// pure: it maps intervals and sizes to offsets. Align and Grow are for all code that reserves memory.
package pack

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
)

// Alignment is the alignment of every offset in bytes: that of the exporter's own plans, and enough
// for every element type.
const Alignment = 16

// Item is a number of bytes to place. They are live from moment First to Last, inclusive.
type Item struct {
	Bytes       int64
	First, Last int
	Align       int64 // of its offset, a power of 2; 0 means Alignment
}

// up returns the first offset from at on that has the item's alignment; at has that of all items.
func (a Item) up(at int64) int64 {
	if a.Align == 0 {
		return at
	}
	return Align(at, a.Align)
}

// Overlaps reports whether the items are live at the same moment.
func (a Item) Overlaps(b Item) bool { return a.First <= b.Last && b.First <= a.Last }

// Layout is a placement of items.
type Layout struct {
	Offsets []int64 // one per item
	Size    int64   // of the arena
	Bound   int64   // the lower bound of Size
	Order   string  // the order of placement that produced it
}

// order is one order in which to place items: by descending keys. peak is the largest number of
// live bytes during the item's life.
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

// MaxItems is the number of items above which inOrder packs them, since Pack, and the verification of
// plans, are quadratic: no exporter writes so many.
const MaxItems = 8192

// maxWork bounds all packing attempts together, in comparisons: about 20 ms.
const maxWork = 1 << 24

// maxRepairs bounds the attempts to improve one order.
const maxRepairs = 48

// Pack places items in each of several orders, each at the lowest gap that is free throughout its
// life, and returns the smallest result. Orders are then improved by placing the item with the
// highest end earlier, within the work bound.
func Pack(items []Item) Layout { return pack(items, maxRepairs) }

// Quick is Pack without improvements, for plans that are made while a program runs.
func Quick(items []Item) Layout { return pack(items, 1) }

func pack(items []Item, rounds int64) Layout {
	if len(items) > MaxItems {
		return inOrder(items)
	}
	steps, live, least := profile(items)
	peaks, bound := peaks(items, steps, live), slices.Max(append(live, 0))
	best := Layout{Size: math.MaxInt64, Bound: least}
	p, work := newPacker(items), 0
	sequences := make([][]int, len(orders))
	keys := make([][2]float64, len(items))
	for round := range rounds {
		goal := bound + bound/256*(2+round) // under a percent at first; each repair accepts a larger excess
		for k, o := range orders {
			if sequences[k] == nil {
				sequences[k] = o.sequence(items, peaks, keys)
			}
			size, top := p.place(sequences[k], best.Size)
			if size < best.Size {
				best.Offsets, best.Size, best.Order = append(best.Offsets[:0], p.offsets...), size, o.name
			}
			if work += p.cost; best.Size <= goal || work > maxWork {
				return best
			}
			promote(sequences[k], top)
		}
	}
	return best
}

// sequence returns the items in the order's sequence; equal ones stay in order. keys is scratch, one
// per item.
func (o order) sequence(items []Item, peaks []int64, keys [][2]float64) []int {
	seq := make([]int, len(items))
	for i, it := range items {
		seq[i], keys[i] = i, o.keys(it, peaks[i])
	}
	slices.SortFunc(seq, func(a, b int) int {
		x, y := &keys[a], &keys[b]
		switch {
		case x[0] > y[0], x[0] == y[0] && x[1] > y[1]:
			return -1
		case x[0] == y[0] && x[1] == y[1]:
			return a - b
		}
		return 1
	})
	return seq
}

// promote moves the entry at index i halfway to the front.
func promote(seq []int, i int) {
	v := seq[i]
	copy(seq[i/2+1:i+1], seq[i/2:i])
	seq[i/2] = v
}

// Naive places every item after the previous one.
func Naive(items []Item) Layout {
	l := Layout{Offsets: make([]int64, len(items)), Bound: lowerBound(items), Order: "naive"}
	for i, it := range items {
		l.Offsets[i] = it.up(l.Size)
		l.Size = l.Offsets[i] + align(it.Bytes)
	}
	return l
}

// inOrder places items in the order of their lives. An item has the offset of one of the same size and
// alignment whose life has ended, or else an offset of its own.
func inOrder(items []Item) Layout {
	l := Layout{Offsets: make([]int64, len(items)), Bound: lowerBound(items), Order: "start"}
	begins, ends := make([]int, len(items)), make([]int, len(items))
	for i := range items {
		begins[i], ends[i] = i, i
	}
	slices.SortStableFunc(begins, func(a, b int) int { return cmp.Compare(items[a].First, items[b].First) })
	slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(items[a].Last, items[b].Last) })
	type kind struct{ bytes, align int64 }
	free := make(map[kind][]int64) // offsets
	for _, i := range begins {
		it := &items[i]
		for ; len(ends) > 0 && items[ends[0]].Last < it.First; ends = ends[1:] {
			if over := items[ends[0]]; over.First <= over.Last {
				free[kind{over.Bytes, over.Align}] = append(free[kind{over.Bytes, over.Align}], l.Offsets[ends[0]])
			}
		}
		k := kind{it.Bytes, it.Align}
		if same := free[k]; len(same) > 0 {
			l.Offsets[i], free[k] = same[len(same)-1], same[:len(same)-1]
			continue
		}
		l.Offsets[i] = it.up(l.Size)
		l.Size = l.Offsets[i] + align(it.Bytes)
	}
	return l
}

func align(n int64) int64 { return Align(n, Alignment) }

// maxPairs is the number of overlapping pairs of lifetimes above which they are not listed: about 8
// MB.
const maxPairs = 1 << 20

// packer places the same items repeatedly.
type packer struct {
	items   []Item
	cost    int // comparisons of one attempt
	offsets []int64
	placed  []bool

	// The items that are live with item i are near[starts[i]:starts[i+1]], and those of them that
	// are placed are the first busy[i] of busies[starts[i]:starts[i+1]], by offset.
	starts []int // nil: there are too many
	near   []int32
	busies []int32
	busy   []int

	order []int32 // scratch: placed items, by offset, if starts is nil
	all   []int32 // scratch: the same for one item, if starts is nil
}

func newPacker(items []Item) *packer {
	n := len(items)
	p := &packer{items: items, offsets: make([]int64, n), placed: make([]bool, n), cost: n * n}
	seq := make([]int32, 0, n)
	for i, it := range items {
		if it.Bytes > 0 {
			seq = append(seq, int32(i))
		}
	}
	slices.SortFunc(seq, func(a, b int32) int { return cmp.Compare(items[a].First, items[b].First) })
	pairs, starts := 0, make([]int, n+1)
	for a, b := range overlappingPairs(items, seq) {
		if pairs++; pairs > maxPairs {
			return p
		}
		starts[a+1]++
		starts[b+1]++
	}
	for i := range n {
		starts[i+1] += starts[i]
	}
	p.cost = 8 * (2*pairs + n) // they are sorted, too
	p.starts, p.near, p.busies, p.busy = starts, make([]int32, 2*pairs), make([]int32, 2*pairs), make([]int, n)
	for a, b := range overlappingPairs(items, seq) {
		p.near[starts[a]+p.busy[a]], p.near[starts[b]+p.busy[b]] = b, a
		p.busy[a]++
		p.busy[b]++
	}
	return p
}

// overlappingPairs yields the pairs of items that are live at the same time; seq is sorted by the start of
// their lives.
func overlappingPairs(items []Item, seq []int32) iter.Seq2[int32, int32] {
	return func(yield func(a, b int32) bool) {
		for n, a := range seq {
			for _, b := range seq[n+1:] {
				if items[b].First > items[a].Last {
					break
				}
				if items[a].Overlaps(items[b]) && !yield(a, b) {
					return
				}
			}
		}
	}
}

// place places the items in the order of seq, as long as they end below limit. It returns the size
// of the arena, and the index in seq of the item with the highest end.
func (p *packer) place(seq []int, limit int64) (size int64, top int) {
	p.order = p.order[:0]
	clear(p.offsets)
	clear(p.placed)
	clear(p.busy)
	for n, i := range seq {
		at := p.lowestGap(i)
		if end := at + align(p.items[i].Bytes); end > size {
			size, top = end, n
		}
		if size >= limit {
			break
		}
		p.offsets[i], p.placed[i] = at, true
		p.record(i)
	}
	return size, top
}

// lowestGap returns the lowest offset at which item i fits between the placed items that are live
// with it.
func (p *packer) lowestGap(i int) int64 {
	at, size := int64(0), align(p.items[i].Bytes)
	if size == 0 {
		return 0
	}
	for _, b := range p.neighbours(i) {
		if at+size <= p.offsets[b] {
			return at
		}
		at = max(at, p.items[i].up(p.offsets[b]+align(p.items[b].Bytes)))
	}
	return at
}

// record records the place of item i for the unplaced items that are live with it.
func (p *packer) record(i int) {
	if p.starts == nil {
		at := p.offsets[i]
		pos, _ := slices.BinarySearchFunc(p.order, at, func(o int32, at int64) int { return cmp.Compare(p.offsets[o], at) })
		p.order = slices.Insert(p.order, pos, int32(i))
		return
	}
	for _, o := range p.near[p.starts[i]:p.starts[i+1]] {
		if !p.placed[o] {
			p.insert(p.busies[p.starts[o]:], p.busy[o], int32(i))
			p.busy[o]++
		}
	}
}

// insert inserts item i into the first n items of a list, which stay sorted by offset.
func (p *packer) insert(list []int32, n int, i int32) {
	for ; n > 0 && p.offsets[list[n-1]] > p.offsets[i]; n-- {
		list[n] = list[n-1]
	}
	list[n] = i
}

// neighbours returns the placed items that are live with item i, by offset.
func (p *packer) neighbours(i int) []int32 {
	if p.starts != nil {
		return p.busies[p.starts[i]:][:p.busy[i]]
	}
	p.all = p.all[:0]
	for _, o := range p.order {
		if p.items[o].Bytes > 0 && p.items[o].Overlaps(p.items[i]) {
			p.all = append(p.all, o)
		}
	}
	return p.all
}

// lowerBound returns the largest number of bytes live at one step: no plan is smaller, whatever its alignment.
func lowerBound(items []Item) int64 {
	_, _, least := profile(items)
	return least
}

// profile returns the steps at which the set of live items changes, in order, and the live bytes
// from there on, with the padding of each item; and the most live bytes without padding.
func profile(items []Item) (steps []int, live []int64, least int64) {
	type event struct {
		step   int
		bytes  int64
		padded int64
	}
	events := make([]event, 0, 2*len(items))
	for _, it := range items {
		if it.Last >= it.First {
			events = append(events, event{it.First, it.Bytes, align(it.Bytes)}, event{it.Last + 1, -it.Bytes, -align(it.Bytes)})
		}
	}
	sort.Slice(events, func(i, k int) bool { return events[i].step < events[k].step })
	steps, live = make([]int, 0, len(events)), make([]int64, 0, len(events)+1)
	var now, bytes int64
	for i, e := range events {
		now += e.padded
		bytes += e.bytes
		if i+1 == len(events) || events[i+1].step != e.step {
			steps, live, least = append(steps, e.step), append(live, now), max(least, bytes)
		}
	}
	return steps, live, least
}

// peaks returns for each item the largest number of live bytes at any step of its life, from the
// profile of all items.
func peaks(items []Item, steps []int, live []int64) []int64 {
	p := make([]int64, len(items))
	for i, it := range items {
		first, _ := slices.BinarySearch(steps, it.First)
		for n := first; n < len(steps) && steps[n] <= it.Last; n++ {
			p[i] = max(p[i], live[n])
		}
	}
	return p
}
