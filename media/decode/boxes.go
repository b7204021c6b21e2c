package decode

import (
	"fmt"
	"math"
)

// Bounds of boxes, which bound the time of comparing them.
const (
	MaxBoxes   = 1000   // returned
	candidates = 30_000 // compared, as detectors do before suppression
)

// Rows reads the boxes of a detector that returns a row for each: the center, the width and the height of a box in pixels, then a score
// for each class; with objectness after the height the scores are multiplied by it. Boxes below a score are dropped.
func Rows(values []float32, width int, objectness bool, score float32) (list []Box, err error) {
	first := 4
	if objectness {
		first = 5
	}
	if width <= first || len(values)%width != 0 {
		return nil, fmt.Errorf("rows of %d elements, want 4 of a box and the scores of its classes", width)
	}
	for ; len(values) > 0; values = values[width:] {
		row := values[:width]
		best := 0
		for i, v := range row[first:] {
			if v > row[first+best] {
				best = i
			}
		}
		b := Box{row[0] - row[2]/2, row[1] - row[3]/2, row[0] + row[2]/2, row[1] + row[3]/2, row[first+best], best}
		if objectness {
			b.Score *= row[4]
		}
		if b.Score >= score && b.area() > 0 && finite(b.Left, b.Top, b.Right, b.Bottom) {
			list = append(list, b)
		}
		if len(list) > candidates {
			return nil, fmt.Errorf("more than %d boxes of a score of at least %g, want a higher one", candidates, score)
		}
	}
	return list, nil
}

func finite(list ...float32) bool {
	for _, v := range list {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return false
		}
	}
	return true
}

// Transposed returns a matrix of rows x columns with the two exchanged: detectors return their boxes as columns, too.
func Transposed(values []float32, rows, columns int) []float32 {
	out := make([]float32, len(values))
	for r := range rows {
		for c := range columns {
			out[c*rows+r] = values[r*columns+c]
		}
	}
	return out
}

// MapOptions says which pixels of a map of probabilities make boxes.
type MapOptions struct {
	Threshold float32 // of a pixel
	Score     float32 // least mean probability of a box's pixels
	Grow      float32 // each side moves out by the area times this over the circumference, for maps of shrunk texts; 0: not
	Least     int     // least width and height in pixels, before growing
}

// Map returns the boxes around the connected pixels of a map of probabilities of width x height, from top to bottom. Pixels are connected
// along sides and corners.
func Map(p []float32, width, height int, o MapOptions) (list []Box) {
	label := make([]bool, len(p))
	var stack []int
	for at := range p {
		if label[at] || !(p[at] > o.Threshold) {
			continue
		}
		stack, label[at] = append(stack[:0], at), true
		c := component{left: width, top: height}
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			x, y := n%width, n/width
			c.add(x, y, p[n])
			for ny := max(y-1, 0); ny <= min(y+1, height-1); ny++ {
				for nx := max(x-1, 0); nx <= min(x+1, width-1); nx++ {
					if next := ny*width + nx; !label[next] && p[next] > o.Threshold {
						label[next], stack = true, append(stack, next)
					}
				}
			}
		}
		if b, ok := c.box(&o, width, height); ok && len(list) < candidates {
			list = append(list, b)
		}
	}
	return list
}

// component is a set of connected pixels.
type component struct {
	left, top, right, bottom, pixels int // right and bottom are after the last
	sum                              float64
}

func (c *component) add(x, y int, p float32) {
	c.left, c.top, c.right, c.bottom = min(c.left, x), min(c.top, y), max(c.right, x+1), max(c.bottom, y+1)
	c.pixels, c.sum = c.pixels+1, c.sum+float64(p)
}

func (c *component) box(o *MapOptions, width, height int) (Box, bool) {
	w, h := float32(c.right-c.left), float32(c.bottom-c.top)
	by := w * h * o.Grow / (2 * (w + h))
	b := Box{max(float32(c.left)-by, 0), max(float32(c.top)-by, 0), min(float32(c.right)+by, float32(width)),
		min(float32(c.bottom)+by, float32(height)), float32(c.sum / float64(c.pixels)), 0}
	return b, b.Score >= o.Score && min(w, h) >= float32(o.Least)
}
