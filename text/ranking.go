package text

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/internal/simd"
)

// ranking orders the most likely tokens. Its memory is kept from one token to the next.
type ranking struct {
	buckets [rankBuckets]float64 // weight of the tokens by the distance of their logits from the highest one
	order   []uint64             // the key of a logit in the upper half, the token in the lower one
	spare   []uint64
	counts  [1 << digitBits]uint32
	ranked  []uint32
}

const (
	rankBuckets = 2048
	rankRange   = 32 // the buckets divide so many temperatures below the highest logit, or all logits if these are closer
	digitBits   = 11
	keyBits     = 32
)

// rank returns the tokens of the highest logits, in their order, those of equal logits by id. The
// weights of the returned ones reach goal, if those of all tokens do: at most the tokens of some
// buckets more than needed are returned. A nil weight counts tokens. The result is valid until the
// next call.
func (r *ranking) rank(logits, weight []float32, goal, temperature float64) []uint32 {
	top, low := bounds(logits)
	scale := max(rankBuckets/rankRange/temperature, (rankBuckets-1)/(float64(top)-float64(low)))
	clear(r.buckets[:])
	for id, x := range logits {
		w := 1.0
		if weight != nil {
			w = float64(weight[id])
		}
		r.buckets[bucketOf(top, x, scale)] += w
	}
	last, sum := 0, r.buckets[0]
	for last < rankBuckets-1 && sum < goal*(1+1e-9) { // sums in another order differ by less
		last++
		sum += r.buckets[last]
	}
	below := math.Inf(-1) // no logit below is in the buckets: a bound with one bucket to spare, and a fast check of most logits
	if last < rankBuckets-1 {
		below = float64(top) - float64(last+2)/scale
	}
	r.order = r.order[:0]
	for id, x := range logits {
		if float64(x) >= below && bucketOf(top, x, scale) <= last {
			r.order = append(r.order, uint64(descending(x))<<keyBits|uint64(id))
		}
	}
	r.sort()
	r.ranked = r.ranked[:0]
	for _, k := range r.order {
		r.ranked = append(r.ranked, uint32(k))
	}
	return r.ranked
}

// bounds returns the highest logit and the lowest finite one.
func bounds(logits []float32) (top, low float32) {
	top, low = logits[argmax(logits)], math.MaxFloat32
	for _, x := range logits {
		if x < low && x >= -math.MaxFloat32 {
			low = x
		}
	}
	return top, low
}

// bucketOf returns the bucket of a logit: the larger, the lower the logit is.
func bucketOf(top, x float32, scale float64) int {
	d := (float64(top) - float64(x)) * scale
	if !(d < rankBuckets-1) { // also for infinity and NaN
		return rankBuckets - 1
	}
	return int(d)
}

// descending returns a key that is the smaller, the higher a logit is.
func descending(x float32) uint32 {
	if x == 0 {
		x = 0 // of negative zero
	}
	bits := math.Float32bits(x)
	if bits>>31 != 0 {
		return bits
	}
	return ^bits &^ (1 << 31)
}

// sort sorts order by the upper halves, which takes linear time. Equal ones keep their order.
func (r *ranking) sort() {
	r.spare = slices.Grow(r.spare[:0], len(r.order))[:len(r.order)]
	for shift := keyBits; shift < 2*keyBits; shift += digitBits {
		clear(r.counts[:])
		for _, k := range r.order {
			r.counts[digit(k, shift)]++
		}
		at := uint32(0)
		for i, n := range r.counts {
			r.counts[i] = at
			at += n
		}
		for _, k := range r.order {
			d := digit(k, shift)
			r.spare[r.counts[d]] = k
			r.counts[d]++
		}
		r.order, r.spare = r.spare, r.order
	}
}

func digit(key uint64, shift int) uint64 { return key >> shift & (1<<digitBits - 1) }

// argmax returns the index of the largest logit, the first of several. None is NaN.
func argmax(logits []float32) (at int) {
	const block = 512 // stays in the cache
	top := float32(math.Inf(-1))
	for from := 0; from < len(logits); from += block {
		if x := simd.Max(logits[from:min(from+block, len(logits))]); x > top {
			at, top = from, x
		}
	}
	for at < len(logits)-1 && logits[at] != top {
		at++
	}
	return at
}
