package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/internal/pack"
)

// Place is the place of an item in a given plan.
type Place struct {
	Arena  int
	Offset int64
}

// Conflict is a pair of items that share bytes in a plan although both are live at one step.
type Conflict struct {
	A, B  int   // indexes of the items
	Arena int   // index of the arena
	Lo    int64 // first shared byte, from the arena's start
	Hi    int64 // end of the shared bytes
	Step  int   // the first step at which both are alive
}

func (c Conflict) String() string {
	return fmt.Sprintf("storages %d and %d share bytes %d–%d of arena %d at step %d", c.A, c.B, c.Lo, c.Hi, c.Arena, c.Step)
}

// maxConflicts ends a verification: a plan with so many conflicts is wrong anyway.
const maxConflicts = 16

// verify finds at most maxConflicts items of a plan that overlap in place and in time. There must
// be at most MaxItems items.
func verify(items []pack.Item, places []Place) []Conflict {
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
			if !items[a].Overlaps(items[b]) {
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
