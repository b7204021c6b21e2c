package pack

import (
	"math/rand/v2"
	"testing"
)

func TestPackIsSafeAndTight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		items := randomItems(r, 1+r.IntN(60), 40)
		l, quick := Pack(items), Quick(items)
		if l.Size > quick.Size {
			t.Fatalf("round %d: %d bytes with improvements, %d without", round, l.Size, quick.Size)
		}
		if a, b, ok := overlap(items, l.Offsets); !ok {
			t.Fatalf("round %d: items %d %+v at %d and %d %+v at %d overlap", round, a, items[a], l.Offsets[a], b, items[b], l.Offsets[b])
		}
		for i, it := range items {
			if l.Offsets[i]%max(it.Align, Alignment) != 0 || l.Offsets[i] < 0 || l.Offsets[i]+it.Bytes > l.Size {
				t.Fatalf("round %d: item %d at %d of an arena of %d", round, i, l.Offsets[i], l.Size)
			}
		}
		bound := lowerBound(items)
		if naive := Naive(items).Size; l.Size < bound || l.Size > naive {
			t.Fatalf("round %d: size %d, want %d to %d", round, l.Size, bound, naive)
		}
	}
}

// TestPackManyAliveTogether packs items that are all live together: too many pairs to list.
func TestPackManyAliveTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	items := make([]Item, 3000)
	for i := range items {
		items[i] = Item{Bytes: int64(1 + r.IntN(100)), First: r.IntN(1500), Last: 1000 + i}
	}
	l := Pack(items)
	if a, b, ok := overlap(items, l.Offsets); !ok {
		t.Fatalf("items %d and %d overlap", a, b)
	}
	if bound := lowerBound(items); l.Size < bound || l.Size > bound+bound/4 {
		t.Errorf("size %d, lower bound %d", l.Size, bound)
	}
}

// TestInOrder packs as if there were too many items for Pack.
func TestInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 500 {
		items := randomItems(r, 1+r.IntN(100), 40)
		for i := range items {
			items[i].Bytes, items[i].Last = int64(r.IntN(4))*64, items[i].Last-r.IntN(2)
		}
		l := inOrder(items)
		if a, b, ok := overlap(items, l.Offsets); !ok {
			t.Fatalf("round %d: items %+v at %d and %+v at %d overlap", round, items[a], l.Offsets[a], items[b], l.Offsets[b])
		}
		for i, it := range items {
			if l.Offsets[i]%max(it.Align, Alignment) != 0 || l.Offsets[i]+it.Bytes > l.Size {
				t.Fatalf("round %d: item %d at %d of an arena of %d", round, i, l.Offsets[i], l.Size)
			}
		}
		if naive := Naive(items).Size; l.Size < l.Bound || l.Size > naive {
			t.Fatalf("round %d: size %d, want %d to %d", round, l.Size, l.Bound, naive)
		}
	}
	chain := make([]Item, MaxItems+1)
	for i := range chain {
		chain[i] = Item{Bytes: 1024, First: i, Last: i + 1}
	}
	if l := Pack(chain); l.Size != 2048 {
		t.Errorf("a chain of %d items needs %d bytes, want 2048", len(chain), l.Size)
	}
}

func TestPackChains(t *testing.T) {
	// A chain of equal layers needs two buffers, whatever its length.
	var items []Item
	for i := range 100 {
		items = append(items, Item{Bytes: 1024, First: i, Last: i + 1})
	}
	if l := Pack(items); l.Size != 2048 {
		t.Errorf("size %d, want 2048", l.Size)
	}
	if got := lowerBound(items); got != 2048 {
		t.Errorf("lower bound %d, want 2048", got)
	}
}

func TestPackManyItemsIsNotQuadratic(t *testing.T) {
	items := randomItems(rand.New(rand.NewPCG(3, 4)), 300_000, 1000)
	if l := Pack(items); l.Size < lowerBound(items) {
		t.Errorf("size %d below the lower bound", l.Size)
	}
}

func randomItems(r *rand.Rand, n, steps int) []Item {
	items := make([]Item, n)
	for i := range items {
		first := r.IntN(steps) - 1
		items[i] = Item{Bytes: int64(r.IntN(100)), First: first, Last: first + r.IntN(8), Align: int64(r.IntN(2)) * 64}
	}
	return items
}

// overlap looks at every pair: the slow and obvious check.
func overlap(items []Item, offsets []int64) (a, b int, ok bool) {
	for a := range items {
		for b := range a {
			if items[a].Bytes > 0 && items[b].Bytes > 0 && items[a].Overlaps(items[b]) &&
				offsets[a] < offsets[b]+items[b].Bytes && offsets[b] < offsets[a]+items[a].Bytes {
				return a, b, false
			}
		}
	}
	return 0, 0, true
}

func BenchmarkPack(b *testing.B) {
	items := randomItems(rand.New(rand.NewPCG(7, 8)), 1000, 1000)
	for b.Loop() {
		Pack(items)
	}
}

func TestAlign(t *testing.T) {
	for _, tt := range []struct{ n, Alignment, want int64 }{{0, 16, 0}, {1, 16, 16}, {16, 16, 16}, {17, 16, 32}, {5, 3, 6}, {6, 3, 6}} {
		if got := Align(tt.n, tt.Alignment); got != tt.want {
			t.Errorf("Align(%d, %d) = %d, want %d", tt.n, tt.Alignment, got, tt.want)
		}
	}
}

func TestGrow(t *testing.T) {
	s := make([]int, 2, 8)
	for _, tt := range []struct {
		n    int
		same bool
	}{{0, true}, {1, true}, {8, true}, {9, false}} {
		g := Grow(s, tt.n)
		if same := cap(g) == cap(s); len(g) != tt.n || same != tt.same {
			t.Errorf("%d elements in %d: %d, same memory %v, want %v", tt.n, cap(s), len(g), same, tt.same)
		}
	}
}
