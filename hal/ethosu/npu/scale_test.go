package npu

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// reference scales with arbitrary precision.
func reference(s scaling, x int64) int64 {
	p := new(big.Int).Mul(big.NewInt(x), big.NewInt(s.mult))
	halfUp := func(v *big.Int, shift uint) *big.Int {
		if shift == 0 {
			return v
		}
		h := new(big.Int).Lsh(big.NewInt(1), shift-1)
		return h.Rsh(h.Add(h, v), shift)
	}
	halfAway := func(v *big.Int, shift uint) *big.Int {
		if v.Sign() < 0 {
			n := halfUp(new(big.Int).Neg(v), shift)
			return n.Neg(n)
		}
		return halfUp(v, shift)
	}
	switch s.rounding {
	case natural:
		p = halfUp(p, s.shift)
	case symmetric:
		p = halfAway(p, s.shift)
	case doubleSymmetric:
		p = halfAway(halfAway(p, min(s.shift, 31)), s.shift-min(s.shift, 31))
	case doubleAsymmetric:
		if s.shift > 31 {
			p = p.Add(p, new(big.Int).Lsh(big.NewInt(int64(p.Sign()|1)), 30))
		}
		p = halfUp(p, s.shift)
	case towardZero:
		p = p.Quo(p, new(big.Int).Lsh(big.NewInt(1), s.shift))
	case towardLower:
		p = p.Rsh(p, s.shift)
	}
	low := new(big.Int).And(p, new(big.Int).SetUint64(^uint64(0))) // the low 64 bits
	return int64(low.Uint64())
}

func TestScaling(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	value := func() int64 {
		edges := []int64{0, 1, -1, 2, -2, 127, -128, 1<<30 - 1, 1 << 30, -1 << 30, 1<<31 - 1, -1 << 31, 1 << 39, -1 << 47}
		if i := rnd.IntN(2 * len(edges)); i < len(edges) {
			return edges[i]
		}
		return rnd.Int64() >> (2 + rnd.IntN(62)) // wider than accumulators
	}
	mults := []int64{0, 1, 3, 1 << 15, 0x40000000, 0x7fffffff, 0x80000001, 0xffffffff}
	for range 200000 {
		s := scaling{mults[rnd.IntN(len(mults))], uint(rnd.IntN(64)), rounding(rnd.IntN(6))}
		x := value()
		v := []int64{x}
		s.applyAll(v)
		want := reference(s, x)
		if got := s.apply(x); got != want || v[0] != want {
			t.Fatalf("%+v of %d: apply %d, applyAll %d, want %d", s, x, got, v[0], want)
		}
	}
}
