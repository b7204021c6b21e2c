// Package decode reads what programs return, with no compatibility promise: texts from classes of frames, spans from probabilities, boxes
// from maps and rows of scores. It works on slices of elements in logical order, of any program.
package decode

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Run is a class that was the most likely of some frames in a row.
type Run struct {
	Class  int
	First  int // frame
	Frames int
	Score  float32 // the largest element of its frames
}

// Runs returns the runs of the most likely classes of frames, without those of a blank class: the greedy decoding of CTC. scores has classes
// elements for each frame; of equal ones the first counts, and NaN never: a frame of
// NaN is blank.
func Runs(scores []float32, classes, blank int) (runs []Run) {
	last := blank
	for f := range len(scores) / max(classes, 1) {
		row := scores[f*classes : (f+1)*classes]
		best := 0
		for i, v := range row {
			if v > row[best] || row[best] != row[best] {
				best = i
			}
		}
		if row[best] != row[best] {
			best = blank
		}
		switch {
		case best == blank:
		case best != last:
			runs = append(runs, Run{best, f, 1, row[best]})
		default:
			r := &runs[len(runs)-1]
			r.Frames, r.Score = r.Frames+1, max(r.Score, row[best])
		}
		last = best
	}
	return runs
}

// Line is a text with the mean score of its symbols.
type Line struct {
	Text  string
	Score float32
}

// Text returns the text of runs by the symbols of the classes.
func Text(runs []Run, symbols []string) Line {
	var b strings.Builder
	sum := float32(0)
	for _, r := range runs {
		b.WriteString(symbols[r.Class])
		sum += r.Score
	}
	return Line{b.String(), sum / max(float32(len(runs)), 1)}
}

// Span is a part of a sequence of frames.
type Span struct {
	From, To int     // frames, To is after the last
	Score    float32 // the largest probability
}

// SpanOptions says which frames make a span.
type SpanOptions struct {
	Threshold float32 // the probability that begins a span
	Release   float32 // it ends below this one, which is at most the threshold
	Gap       int     // shorter gaps in frames are filled
	Least     int     // shorter spans are dropped
}

// Spans returns the parts whose probabilities are high, in order.
func Spans(p []float32, o SpanOptions) (list []Span) {
	open := false
	for f, v := range p {
		switch {
		case !open && v >= o.Threshold:
			if n := len(list); n == 0 || f-list[n-1].To >= max(o.Gap, 1) {
				list = append(list, Span{From: f})
			}
			open = true
		case open && (v < o.Release || v != v):
			open = false
		}
		if open {
			s := &list[len(list)-1]
			s.To, s.Score = f+1, max(s.Score, v)
		}
	}
	return slices.DeleteFunc(list, func(s Span) bool { return s.To-s.From < o.Least })
}

// Box is an object in a picture, in its pixels.
type Box struct {
	Left   float32 `json:"left"`
	Top    float32 `json:"top"`
	Right  float32 `json:"right"`
	Bottom float32 `json:"bottom"`
	Score  float32 `json:"score"`
	Class  int     `json:"class"`
}

func (b *Box) area() float32 { return max(b.Right-b.Left, 0) * max(b.Bottom-b.Top, 0) }

// Overlap returns the intersection of two boxes over their union, 0 to 1.
func Overlap(a, b *Box) float32 {
	both := Box{Left: max(a.Left, b.Left), Top: max(a.Top, b.Top), Right: min(a.Right, b.Right), Bottom: min(a.Bottom, b.Bottom)}
	area := both.area()
	if union := a.area() + b.area() - area; union > 0 {
		return area / union
	}
	return 0
}

// Best sorts boxes by score, and drops those that overlap a better one of their class by more than a limit: non-maximum suppression. It
// keeps at most most boxes.
func Best(list []Box, limit float32, most int) []Box {
	sort.SliceStable(list, func(i, k int) bool { return cmp.Less(list[k].Score, list[i].Score) })
	var kept []Box
	for i := range list {
		b := &list[i]
		if len(kept) == most {
			break
		}
		if !slices.ContainsFunc(kept, func(k Box) bool { return k.Class == b.Class && Overlap(&k, b) > limit }) {
			kept = append(kept, *b)
		}
	}
	return kept
}
