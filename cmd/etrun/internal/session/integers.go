package session

import (
	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// attempts are what random integers are tried, until a program accepts them: those of inputs with at least so many elements are positions
// of what the program indexes with them, others are in a range. A single position must often leave space for what follows it.
var attempts = []struct{ elements, least, most int }{{1, 0, 1}, {2, 0, 1}, {maxElements, 0, 1}, {maxElements, 1, 1}, {maxElements, 0, 0},
	{maxElements, 2, 2}}

const maxElements = int(^uint(0) >> 1)

// Attempts is the number of values of Options.Attempt.
func Attempts() int { return len(attempts) }

// mostIndex bounds random positions: all element types wider than bytes have them.
const mostIndex = 1<<15 - 1

// integers returns the ranges of random integers for the inputs of a method, see Options.Indexes.
func (s *Session) integers(c Callee) func(index int) (least, most int) {
	m, ok := c.(*etrun.Method)
	if !ok {
		return nil
	}
	g, try := m.Report().Plan.Method, attempts[s.options.Attempt]
	return func(i int) (least, most int) {
		if i < len(g.Inputs) {
			v := g.Inputs[i]
			if n, _ := tensor.Product(g.Values[v].Tensor.Sizes); n >= try.elements {
				if b := g.Bound(v); b.Most > 1 {
					return 0, min(b.Most-1, mostIndex)
				}
			}
		}
		return try.least, try.most
	}
}
