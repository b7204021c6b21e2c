package compile

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// TestExternal stores equal bytes once, and limits what is stored of bytes that are read at many lengths.
func TestExternal(t *testing.T) {
	c := newConstants(1 << 20)
	e := &external{digest: c.digest, known: make(map[string]bool), stored: make(map[digest]int)}
	data := make([]byte, 1<<20)
	for i, key := range []string{"a", "b", "a"} {
		if e.add(key, data, nil); len(e.segments) != 1 || len(e.entries) != min(i+1, 2) {
			t.Errorf("%s: %d segments of %d keys", key, len(e.segments), len(e.entries))
		}
	}
	e.named = func(key string) ([]byte, bool) { return data, key == "c" || key == "d" }
	for key, n := range map[string]int{"c": len(data), "d": 1} { // a data file has the bytes of c
		e.add(key, data[:n], nil)
		stored := slices.ContainsFunc(e.entries, func(n *tree.Node) bool { return n.Fields["key"] == key })
		if !e.known[key] || stored != (key == "d") {
			t.Errorf("%s: known %v, stored %v", key, e.known[key], stored)
		}
	}
	for n := range 1000 {
		e.add(fmt.Sprint(n), data[n+1:], nil)
	}
	total := 0
	for _, s := range e.segments {
		total += len(s)
	}
	if limit := constantReuse<<20 + constantSlack; total > limit+1<<20 || !errors.Is(c.err, pte.ErrLimit) {
		t.Errorf("%d bytes of at most %d, %v", total, limit, c.err)
	}
}
