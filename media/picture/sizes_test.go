package picture

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Every attempt is a size that the input can have, all differ, the first is the picture's own if it fits, and the last the largest.
func TestAttempts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	side := func() int { return 1 + r.IntN(1<<r.IntN(14)) }
	for range 3000 {
		p, f := header{h: side(), w: side()}, frame{n: -1, height: side(), width: side()}
		want := Want{DType: tensor.Float32, Dynamic: true}
		tried := map[[2]int]bool{}
		largest := false
		for n := 0; n >= 0; n = (Recipe{}).next(p, f, want) {
			want.Attempt = n
			h, w, whole := f.attempt(p, n)
			if h < 1 || w < 1 || h > f.height || w > f.width || tried[[2]int{h, w}] {
				t.Fatalf("%d×%d pixels in %d×%d: attempt %d is %d×%d, before were %v", p.w, p.h, f.width, f.height, n, w, h, tried)
			}
			if n == 0 && p.h <= f.height && p.w <= f.width && (h != p.h || w != p.w || !whole) {
				t.Fatalf("%d×%d pixels in %d×%d: %d×%d, whole %v", p.w, p.h, f.width, f.height, w, h, whole)
			}
			tried[[2]int{h, w}] = true
			largest = largest || h == f.height && w == f.width
		}
		if list := f.attempts(p); !largest || list[0] != 0 || len(tried) != len(list) {
			t.Fatalf("%d×%d pixels in %d×%d: %v", p.w, p.h, f.width, f.height, tried)
		}
	}
}

// The time of all attempts does not depend on the declared sizes.
func TestAttemptsOfLargeInputs(t *testing.T) {
	begun := time.Now()
	for _, f := range []frame{{height: maxPixels, width: 1}, {height: 1, width: maxPixels}, {height: maxPixels, width: maxPixels}} {
		for _, p := range []header{{h: 65535, w: 1}, {h: 1, w: 65535}, {h: 8000, w: 8000}} {
			if list := f.attempts(p); len(list) == 0 {
				t.Errorf("%d×%d pixels: no attempts", p.w, p.h)
			}
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
