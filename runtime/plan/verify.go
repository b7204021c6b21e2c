package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Place is where somebody else's plan puts an item.
type Place struct {
	Arena  int
	Offset int64
}

// Conflict is a pair of items that a plan puts in the same bytes although both are
// alive at one step.
type Conflict struct {
	A, B  int   // indexes of the items
	Arena int   // where
	Lo    int64 // first shared byte, from the arena's start
	Hi    int64 // end of the shared bytes
	Step  int   // the first step at which both are alive
}

func (c Conflict) String() string {
	return fmt.Sprintf("storages %d and %d share bytes %d–%d of arena %d at step %d", c.A, c.B, c.Lo, c.Hi, c.Arena, c.Step)
}

// maxConflicts ends a verification: a plan with so many is wrong, whatever follows.
const maxConflicts = 16

// Verify finds items of a plan that overlap in place and in time, at most
// maxConflicts of them. Callers keep to MaxItems.
func Verify(items []Item, places []Place) []Conflict {
	seq := make([]int, 0, len(items))
	for i, it := range items {
		if it.Bytes > 0 && it.Last >= it.First {
			seq = append(seq, i)
		}
	}
	slices.SortFunc(seq, func(a, b int) int {
		return cmp.Or(cmp.Compare(places[a].Arena, places[b].Arena), cmp.Compare(places[a].Offset, places[b].Offset), cmp.Compare(a, b))
	})
	var found []Conflict
	for n, a := range seq {
		end := places[a].Offset + items[a].Bytes
		for _, b := range seq[n+1:] {
			if places[b].Arena != places[a].Arena || places[b].Offset >= end {
				break
			}
			if !items[a].overlaps(items[b]) {
				continue
			}
			found = append(found, Conflict{A: a, B: b, Arena: places[a].Arena, Lo: places[b].Offset,
				Hi: min(end, places[b].Offset+items[b].Bytes), Step: max(items[a].First, items[b].First)})
			if len(found) == maxConflicts {
				return found
			}
		}
	}
	return found
}
