package weights

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// errBudget reports streams that decode to too many weights.
var errBudget = isa.Malformed("more weights than the constants can hold")

// stream returns the weights of one core in stream order.
type stream struct {
	decoder *Decoder
	values  []int16 // decoded weights
	at      int     // of the next one
	given   int     // weights before values
	more    bool    // the stream continues after values
	err     error
}

// next returns the next weight; ok is false at the end of the stream or after an error.
func (s *stream) next() (v int16, ok bool) {
	if s.at == len(s.values) && !s.refill() {
		return 0, false
	}
	v = s.values[s.at]
	s.at++
	return v, true
}

// refillWeights is the number of weights decoded at once.
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

// checkTail returns an error if nonzero weights are left. After the operation's weights a stream
// contains only zeros, at most one slice.
func (s *stream) checkTail() error {
	for range 2 * maxSlice {
		v, ok := s.next()
		if !ok {
			return s.err
		}
		if v != 0 {
			return isa.Malformed("weight %d past the end: got %d, want 0", s.given+s.at-1, v)
		}
	}
	return isa.Malformed("weight stream continues after its end")
}
