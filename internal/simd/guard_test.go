//go:build linux

package simd_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/internal/guard"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// envGuardFull asks for every alignment at every length, instead of some.
const envGuardFull = "ETRUN_GUARD_FULL"

// memory gives a loop its operands: ordinary ones, or ones that lie at a page without
// access.
type memory struct {
	t      *testing.T
	r      *rand.Rand
	arena  *guard.Arena // nil for ordinary memory
	start  bool         // at the first bytes of pages, not at the last
	slack  int          // bytes between an operand and the page without access
	blocks []block
}

// block is an operand, and the memory around it that must stay as it is.
type block struct {
	data, before, behind []byte
	wide                 bool // of float64
}

const poison = 0xd7

// vec is an operand of n elements that fill makes.
func vec[T tensor.Element](m *memory, n int, fill func(r *rand.Rand) T) []T {
	m.t.Helper()
	var z [1]T
	size := n * len(tensor.BytesOf(z[:]))
	_, wide := any(z[0]).(float64)
	b := block{wide: wide}
	if m.arena == nil {
		b.data = tensor.AlignedBytes(size)
	} else {
		at, err := m.arena.Allocate(size + 64)
		if err != nil {
			m.t.Fatal(err)
		}
		whole := at.Start(at.Len(), 0)
		from := at.Len() - m.slack - size
		if m.start {
			from = m.slack
		}
		b.data = whole[from : from+size : from+size]
		b.before, b.behind = whole[max(0, from-64):from], whole[from+size:min(from+size+64, len(whole))]
		for _, edge := range [2][]byte{b.before, b.behind} {
			for i := range edge {
				edge[i] = poison
			}
		}
	}
	m.blocks = append(m.blocks, b)
	out := tensor.View[T](b.data)
	for i := range out {
		out[i] = fill(m.r)
	}
	return out
}

func unit(r *rand.Rand) float32     { return r.Float32()*2 - 1 }
func anyInt(r *rand.Rand) int32     { return int32(r.Uint32()) }
func anyWord(r *rand.Rand) uint32   { return r.Uint32() }
func anyByte(r *rand.Rand) uint8    { return uint8(r.Uint32()) }
func wideUnit(r *rand.Rand) float64 { return r.Float64() }
func lanesOf(r *rand.Rand) uint8    { return []uint8{0, 1, 0xff, 0x80}[r.IntN(4)] }

func (m *memory) floats(n int) []float32 { return vec(m, n, unit) }
func (m *memory) bytes(n int) []byte     { return vec(m, n, anyByte) }

// result notes numbers that a loop returns.
func (m *memory) result(x ...float32) {
	m.blocks = append(m.blocks, block{data: bytes.Clone(tensor.BytesOf(x))})
}

// intact wants what surrounds the operands not to be written.
func (m *memory) intact(name string) {
	m.t.Helper()
	for i, b := range m.blocks {
		for side, edge := range [2][]byte{b.before, b.behind} {
			if n := bytes.Count(edge, []byte{poison}); n != len(edge) {
				m.t.Fatalf("%s: %d bytes %s operand %d were written", name, len(edge)-n, [2]string{"in front of", "behind"}[side], i)
			}
		}
	}
}

// TestGuard runs every loop at every level and length with operands that end, and that
// begin, at a page without access: an access beyond them ends the process. Results
// must be the same bits as in ordinary memory, and on floats nearly those of the loops
// in Go.
func TestGuard(t *testing.T) {
	full := os.Getenv(envGuardFull) != ""
	var arena guard.Arena
	plain := make(map[string][]block)
	var levels []string
	simd.EachLevel(func(level string) { levels = append(levels, level) })
	last := levels[len(levels)-1]
	// the loops in Go first: what the others are compared with
	simd.EachLevel(func(level string) {
		if level != last {
			return
		}
		eachLoop(func(name string, l *loop, n int) {
			m := &memory{t: t, r: rand.New(rand.NewPCG(uint64(n), 1))}
			l.run(m, n)
			plain[name] = m.blocks
		})
	})
	simd.EachLevel(func(level string) {
		eachLoop(func(name string, l *loop, n int) {
			heap := &memory{t: t, r: rand.New(rand.NewPCG(uint64(n), 1))}
			l.run(heap, n)
			if l.converts == 0 && !near(heap.blocks, plain[name], n) {
				t.Fatalf("%s: %s and %s differ", name, level, last)
			}
			for slack := 0; slack < 64; slack += l.align {
				if !full && slack > 0 && (slack/l.align+n)%7 != 0 {
					continue
				}
				for _, start := range []bool{false, true} {
					guarded := &memory{t: t, r: rand.New(rand.NewPCG(uint64(n), 1)), arena: &arena, start: start, slack: slack}
					place := fmt.Sprintf("%s at level %s, slack %d, at the start %v", name, level, slack, start)
					if fault := faultOf(func() { l.run(guarded, n) }); fault != nil {
						t.Fatalf("%s: %v", place, fault)
					}
					guarded.intact(place)
					for i, b := range guarded.blocks {
						if !bytes.Equal(b.data, heap.blocks[i].data) {
							t.Fatalf("%s: operand %d is not what it is in ordinary memory", place, i)
						}
					}
					arena.Reset()
				}
			}
		})
	})
}

// faultOf is the panic of f, an access to a page without access among them.
func faultOf(f func()) (fault any) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() }()
	f()
	return nil
}

// TestGuardSees lets vector loops go one element beyond memory.
func TestGuardSees(t *testing.T) {
	m, err := guard.Map(1)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	simd.EachLevel(func(level string) {
		x := tensor.View[float32](m.Behind(400, 0, 4))
		for n := range len(x) {
			if fault := faultOf(func() { simd.Sum(x[:n]) }); fault != nil {
				t.Errorf("%s: sum of %d elements: %v", level, n, fault)
			}
		}
		beyond := map[string]func(){"sum": func() { simd.Sum(x) }, "fill": func() { simd.Fill(x, 1) }, "exp": func() { simd.Exp(x, x) }}
		for name, f := range beyond {
			if faultOf(f) == nil {
				t.Errorf("%s: %s beyond the end does not fault", level, name)
			}
		}
	})
}

// sureLength is the length up to which TestGuard runs loops with every length: a vector of bytes and a rest. Beyond it, one
// of four lengths runs, unless all cases do.
const sureLength = 80

func eachLoop(f func(name string, l *loop, n int)) {
	for i := range loops {
		l := &loops[i]
		for n := l.least; n <= 200; n += max(l.step, 1) {
			if i := n / max(l.step, 1); n > sureLength && !cases.Every(4, i+i/4) { // even and odd ones
				continue
			}
			f(fmt.Sprintf("%s of %d", l.name, n), l, n)
		}
	}
}

// near compares float blocks with a bound that grows with the terms of a sum; others
// must be the same.
func near(got, want []block, terms int) bool {
	for i := range want {
		if bytes.Equal(got[i].data, want[i].data) {
			continue
		}
		if len(got[i].data)%4 != 0 {
			return false
		}
		if want[i].wide && !within(tensor.View[float64](got[i].data), tensor.View[float64](want[i].data), 1e-14) {
			return false
		}
		if !want[i].wide && !within(tensor.View[float32](got[i].data), tensor.View[float32](want[i].data), 1e-6*(1+math.Sqrt(float64(terms)))) {
			return false
		}
	}
	return true
}

func within[T float32 | float64](got, want []T, bound float64) bool {
	for i, w := range want {
		if g := got[i]; g != w && !(math.Abs(float64(g-w)) <= bound*(1+math.Abs(float64(w)))) {
			return false
		}
	}
	return true
}
