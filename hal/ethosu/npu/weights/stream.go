package weights

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// errBudget is the refusal of streams that blow up.
var errBudget = isa.Malformed("more weights than the constants can hold")

// stream gives the weights of one core in the order of the stream.
type stream struct {
	decoder *Decoder
	values  []int16 // decoded weights
	at      int     // of the next one
	given   int     // weights before values
	more    bool    // the stream goes on after values
	err     error
}

// next is the next weight; ok is false at the end of the stream or at an error.
func (s *stream) next() (v int16, ok bool) {
	if s.at == len(s.values) && !s.refill() {
		return 0, false
	}
	v = s.values[s.at]
	s.at++
	return v, true
}

// refillWeights is the number of weights that are decoded at once.
const refillWeights = 1 << 14

func (s *stream) refill() bool {
	if !s.more || s.err != nil {
		return false
	}
	r := s.decoder
	if r.values == nil {
		r.values = make([]int16, 0, refillWeights)
	}
	s.given, s.at = s.given+len(s.values), 0
	s.values, s.err = r.mlw.fill(r.values)
	s.more = len(s.values) == refillWeights
	if r.Budget -= len(s.values); r.Budget < 0 {
		s.err = errBudget
	}
	return s.err == nil && len(s.values) > 0
}

// rest reports weights other than 0 that are left. A stream holds zeros alone after
// what its operation needs, and no more of them than a slice has.
func (s *stream) rest() error {
	for range 2 * maxSlice {
		v, ok := s.next()
		if !ok {
			return s.err
		}
		if v != 0 {
			return isa.Malformed("weight %d is past the end and %d, not 0", s.given+s.at-1, v)
		}
	}
	return isa.Malformed("weight stream goes on after its end")
}
