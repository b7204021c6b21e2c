package weights

import (
	"fmt"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Shape is the size of a grid: output channels, rows and columns of the kernel, and input channels,
// 1 if the operation is depthwise.
type Shape struct{ O, KH, KW, I int }

// maxWeights is the largest number of weights of one operation.
const maxWeights = 1 << 28

// Check returns an error for more than MaxWeights. Each size must be at most 2^16.
func (s Shape) Check() error {
	n := int64(s.O)
	for _, size := range [...]int{s.KH, s.KW, s.I} {
		if n *= int64(size); n > maxWeights {
			return isa.Unsupported("weights of %v, want at most %d", s, maxWeights)
		}
	}
	return nil
}

func (s Shape) String() string { return fmt.Sprintf("%dx%dx%dx%d", s.O, s.KH, s.KW, s.I) }

// Len returns the number of weights.
func (s Shape) Len() int { return s.O * s.KH * s.KW * s.I }

// Grid contains the weights of an operation: [O][KH][KW][I].
type Grid struct {
	Shape
	Values []int16
}

// place copies the next weight of s to its position; positions outside the grid are padding and
// must be 0.
func (g *Grid) place(s *stream, o, ky, kx, i int) error {
	v, ok := s.next()
	if !ok {
		if s.err != nil {
			return s.err
		}
		return isa.Malformed("weight stream too short: %d weights, up to output channel %d of %d", s.given+s.at, min(o, g.O), g.O)
	}
	if o < g.O && i < g.I && ky < g.KH && kx < g.KW {
		g.Values[((o*g.KH+ky)*g.KW+kx)*g.I+i] = v
		return nil
	}
	return paddingError(s, v)
}

// pad reads n weights of padding.
func (g *Grid) pad(s *stream, n int) error {
	for range n {
		if err := g.place(s, g.O, 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

func paddingError(s *stream, v int16) error {
	if v == 0 {
		return nil
	}
	return isa.Malformed("padding weight %d: got %d, want 0", s.given+s.at-1, v)
}
