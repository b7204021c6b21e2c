// Package weights (no compatibility promise) decodes the weight streams of the Ethos-U:
// the standard one, Golomb-Rice coded, of all units, and the fast one of the U85.
// Streams hold the weights in the order in which the hardware works on them; a [Grid]
// has them by channel and kernel element.
package weights

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// Decoder decodes the streams of operations. It keeps its memory from one operation to
// the next, and is used by one goroutine at a time.
type Decoder struct {
	Budget int // weights that may still be decoded
	mlw    mlw
	values []int16
}

// Decode decodes the streams of an operation, [Order.Streams] of them, to a grid of its
// own. Errors are *isa.Fault.
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
		if err := s.rest(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// read fills the part of the grid that a core's stream has.
func (w *Order) read(g *Grid, s *stream, core int) error {
	if w.U85 {
		return w.readU85(g, s, core)
	}
	return w.readU65(g, s, core)
}

// readFast reads the one stream of a fast weight decoder. What is left of its last
// bytes means nothing.
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
		return isa.Malformed("fast weight stream with %d weights too many", left)
	}
	return nil
}

// splitFast takes the one stream of a fast weight decoder apart: blocks come from
// each core in turn.
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
