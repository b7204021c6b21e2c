// Package weights (no compatibility promise) decodes the weight streams of the Ethos-U: the
// standard Golomb-Rice coded stream of all NPUs, and the fast weight stream of the U85. Streams
// contain the weights in the hardware's processing order; a [Grid] is indexed by channel and kernel
// element.
package weights

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// Decoder decodes the streams of operations. It reuses its memory between operations and is used by
// one goroutine at a time.
type Decoder struct {
	Budget int // remaining number of weights that may be decoded
	mlw    mlw
	values []int16
}

// Decode decodes the streams of an operation, [Order.Streams] of them, to a new grid. Errors are
// *isa.Fault.
func (d *Decoder) Decode(w *Order, shape Shape, streams [][]byte) (*Grid, error) {
	if err := shape.Check(); err != nil {
		return nil, err
	}
	if d.Budget -= shape.Len(); d.Budget < 0 {
		return nil, errBudget
	}
	g := &Grid{Shape: shape, Values: make([]int16, shape.Len())}
	if w.Fast {
		return g, d.readFast(w, g, streams[0])
	}
	for core, data := range streams {
		s := &stream{decoder: d, more: true}
		d.mlw.reset(data)
		if err := w.read(g, s, core); err != nil {
			return nil, err
		}
		if err := s.checkTail(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// read fills the part of the grid in a core's stream.
func (w *Order) read(g *Grid, s *stream, core int) error {
	if w.U85 {
		return w.readU85(g, s, core)
	}
	return w.readU65(g, s, core)
}

// readFast decodes a fast weight stream. The rest of its last bytes is ignored.
func (d *Decoder) readFast(w *Order, g *Grid, data []byte) error {
	parts, err := d.splitFast(w, data)
	if err != nil {
		return err
	}
	left := 0
	for core := range parts {
		s := &stream{decoder: d, values: parts[core]}
		if err := w.read(g, s, core); err != nil {
			return err
		}
		left += len(s.values) - s.at
	}
	if left > 4*fwdAlign {
		return isa.Malformed("fast weight stream with %d surplus weights", left)
	}
	return nil
}

// splitFast splits a fast weight stream, in which the blocks of the cores alternate.
func (d *Decoder) splitFast(w *Order, data []byte) ([][]int16, error) {
	values, err := decodeFWD(data, &d.Budget)
	if err != nil {
		return nil, err
	}
	out, block := make([][]int16, w.Cores), w.UBlock*w.IFMUBlock*w.Round/w.Cores
	for i := 0; len(values) > 0; i++ {
		n := min(block, len(values))
		out[i%w.Cores] = append(out[i%w.Cores], values[:n]...)
		values = values[n:]
	}
	return out, nil
}
