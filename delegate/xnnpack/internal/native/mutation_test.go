package native

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestMutations changes random bytes of valid payloads. Payloads that are still accepted must also run
// in the library, with the inferred shapes.
func TestMutations(t *testing.T) {
	xnntest.Library(t)
	rounds := 500
	if n, err := strconv.Atoi(os.Getenv("ETRUN_MUTATIONS")); err == nil {
		rounds = n
	}
	list := graphtest.Samples(1)
	r := rand.New(rand.NewPCG(uint64(rounds), 2))
	accepted := 0
	for range rounds {
		g := list[r.IntN(len(list))].Graph
		if r.IntN(2) == 0 {
			g = graphtest.RandomGraph(r.Uint64N(1000), 4)
		}
		data := graphtest.Encode(g)
		end := 32 + int(uint32(data[14])|uint32(data[15])<<8) // of the FlatBuffer
		for range 1 + r.IntN(3) {
			at := 32 + r.IntN(end-32)
			if r.IntN(3) == 0 {
				data[at] = uint8(r.IntN(16))
			} else {
				data[at] ^= 1 << r.IntN(8)
			}
		}
		before := len(blocks.by)
		if runMutation(t, data) {
			accepted++
		}
		if n := len(blocks.by) - before; n != 0 {
			t.Errorf("%d packed blocks are not freed", n)
		}
	}
	t.Logf("accepted %d of %d payloads", accepted, rounds)
}

// runMutation runs a payload in the library if it is valid and not too large. It reports whether it ran.
func runMutation(t *testing.T, data []byte) bool {
	g, err := graphtest.ReadGraph(data, nil)
	if err != nil {
		return false
	}
	shapes, err := g.Repair()
	if err != nil || g.Cost(shapes) > 1e6 || PlanLimits(g, shapes) != "" || Refuses(g, shapes) != "" {
		return false
	}
	img, err := compile(data)
	if err != nil {
		if !errors.Is(err, delegate.ErrUnsupported) {
			t.Errorf("compile: got %v, want no error or %v", err, delegate.ErrUnsupported)
		}
		return false
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Errorf("unit: got %v, want no error", err)
		return false
	}
	defer u.Close()
	args := graphtest.NewMaker(9).Arguments(img.Graph)
	if err := u.Execute(context.Background(), args); err != nil && !errors.Is(err, delegate.ErrArgument) {
		t.Errorf("execute: got %v, want no error or %v", err, delegate.ErrArgument)
	}
	return true
}
