// Package chart draws memory plans and profiles as SVG. Horizontal positions are percentages,
// as the width depends on the window; vertical positions are pixels.
package chart

import (
	_ "embed" // style sheet
	"fmt"
	"html"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
)

// Chart is a drawing of several plans of one method, one below the other: time from left to right, addresses upward, one
// box per storage. The first plan fills its panel; the others have its scale, unless they are larger.
type Chart struct {
	Title string
	// Starts are the first moments of the instructions, and the end. Time goes from moment -1 (inputs
	// are set) to the end (outputs are read).
	Starts []int
	Bound  int64 // most bytes of storages alive at one moment
	Peak   int   // moment with the most live bytes
	Plans  []Plan
}

// Plan is one memory plan.
type Plan struct {
	Name  string
	Size  int64 // bytes of the arenas; boxes above them are state and scratch
	Boxes []Box
}

// Box is one storage: bytes Offset to Offset+Bytes, alive from moment First to Last.
type Box struct {
	First, Last   int
	Offset, Bytes int64
	Label         string // short, drawn if it fits
	Detail        string // tooltip
	Class         string // one of classes
	Conflict      bool   // shares bytes with another box at the same time
	Item          string // of the memory plan, for scripts; empty for none
}

// classes are the kinds of boxes, and their CSS classes.
var classes = []string{"input", "activation", "output", "state", "scratch"}

// Style is the style sheet of drawings, with colors for light and dark windows as variables
// of the root.
//
//go:embed chart.css
var Style string

// Sizes of a drawing, in pixels.
const (
	Width      = 720 // unless the window sets another
	axisWidth  = 72
	areaWidth  = Width - axisWidth - 8
	nameHeight = 26
	plotHeight = 340
	panelFoot  = 40
	legendFoot = 26
	maxBoxes   = 4000 // per plan; the largest are drawn
)

// panelHeight is the height of one plan with its axes.
const panelHeight = nameHeight + plotHeight + panelFoot

// WriteSVG writes the chart as an SVG document.
func (c *Chart) WriteSVG(w io.Writer) error {
	var b strings.Builder
	const title = 34
	height := title + len(c.Plans)*panelHeight + legendFoot
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+
		"\n<style>%[3]s</style>\n", Width, height, Style)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/><text x="8" y="22" class="title">%s</text>`+"\n",
		Width, height, html.EscapeString(c.Title))
	for i := range c.Plans {
		at := title + i*panelHeight
		fmt.Fprintf(&b, `<svg y="%d" width="%d" height="%d"><text x="8" y="18" class="name">%s</text></svg>`+"\n",
			at, Width, nameHeight, html.EscapeString(c.Plans[i].Name))
		fmt.Fprintf(&b, `<svg y="%d" width="%d" height="%d">`+"\n", at+nameHeight, axisWidth, plotHeight+panelFoot)
		c.axis(&b, c.top(i))
		fmt.Fprintf(&b, `</svg><svg x="%d" y="%d" width="%d" height="%d">`+"\n", axisWidth, at+nameHeight, areaWidth, plotHeight+panelFoot)
		c.area(&b, i)
		b.WriteString("</svg>\n")
	}
	fmt.Fprintf(&b, `<svg y="%d" width="%d" height="%d">`, height-legendFoot, Width, legendFoot)
	c.legend(&b)
	b.WriteString("</svg></svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Panel draws one plan, without its name, as an element of a page with [Style]. The page sets
// its width; labels fit [Width].
func (c *Chart) Panel(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<div class="plan"><svg class="chart axis" width="%d" height="%d">`+"\n", axisWidth, plotHeight+panelFoot)
	c.axis(&b, c.top(i))
	fmt.Fprintf(&b, `</svg><svg class="chart area" width="%d" height="%d">`+"\n", areaWidth, plotHeight+panelFoot)
	c.area(&b, i)
	b.WriteString("</svg></div>\n")
	return b.String()
}

// top returns the number of bytes at the upper edge of a plan.
func (c *Chart) top(i int) int64 {
	top := max(c.Bound, 1)
	for _, k := range []int{0, i} {
		p := &c.Plans[k]
		top = max(top, p.Size)
		for i := range p.Boxes {
			top = max(top, p.Boxes[i].Offset+p.Boxes[i].Bytes)
		}
	}
	top = min(top, 1<<60) // a file may declare more
	return top + top/20 + 1
}

// classes returns the classes in use.
func (c *Chart) classes() (list []string) {
	for _, class := range classes {
		if slices.ContainsFunc(c.Plans, func(p Plan) bool {
			return slices.ContainsFunc(p.Boxes, func(x Box) bool { return x.Class == class })
		}) {
			list = append(list, class)
		}
	}
	return list
}

// legend draws the classes and the lower bound.
func (c *Chart) legend(b *strings.Builder) {
	x := 8
	for _, class := range c.classes() {
		fmt.Fprintf(b, `<rect x="%d" y="5" width="12" height="12" class="%s"/><text x="%d" y="15" class="tick">%s</text>`+"\n",
			x, class, x+17, class)
		x += 46 + int(charWidth*float64(len(class)))
	}
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="11" y2="11" class="bound"/><text x="%d" y="15" class="tick">alive at most %s</text>`+"\n",
		x, x+24, x+30, bytesize.Format(c.Bound))
}

// x returns the horizontal position of a moment in per cent.
func (c *Chart) x(moment int) float64 {
	return 100 * float64(moment+1) / float64(c.Starts[len(c.Starts)-1]+2)
}

// y returns the vertical position of an address in pixels from the upper edge, which is at top.
func y(bytes, top int64) float64 { return plotHeight * (1 - float64(bytes)/float64(top)) }

// ticks returns round addresses.
func ticks(top int64) (list []int64) {
	for at, step := int64(0), round(float64(top)/6); at <= top; at += step {
		list = append(list, at)
	}
	return list
}

// axis draws the address axis.
func (c *Chart) axis(b *strings.Builder, top int64) {
	for _, at := range ticks(top) {
		fmt.Fprintf(b, `<text x="%d" y="%.1f" class="tick" text-anchor="end">%s</text>`+"\n",
			axisWidth-6, min(max(y(at, top)+4, 9), plotHeight), bytesize.Format(at))
	}
}

// area draws the boxes of a plan and the time axis.
func (c *Chart) area(b *strings.Builder, i int) {
	p, top := &c.Plans[i], c.top(i)
	fmt.Fprintf(b, `<rect width="100%%" height="%d" class="ground"/>`+"\n", plotHeight)
	for _, at := range ticks(top) {
		across(b, y(at, top), "grid")
	}
	for _, box := range largest(p.Boxes) {
		c.cell(&box, top).write(b, areaWidth)
	}
	fmt.Fprintf(b, `<rect x="%.3f%%" width="%.3f%%" height="%d" class="peak"/>`+"\n",
		c.x(c.Peak), max(c.x(c.Peak+1)-c.x(c.Peak), 0.2), plotHeight)
	across(b, y(p.Size, top), "size")
	across(b, y(c.Bound, top), "bound")
	c.steps(b)
}

// across draws a line over the whole width.
func across(b *strings.Builder, y float64, class string) {
	fmt.Fprintf(b, `<line x1="0" x2="100%%" y1="%.1f" y2="%.1f" class="%s"/>`+"\n", y, y, class)
}

// largest returns the boxes to draw, the small ones last so that they are on top.
func largest(boxes []Box) []Box {
	boxes = slices.Clone(boxes)
	sort.SliceStable(boxes, func(i, j int) bool { return boxes[i].Bytes > boxes[j].Bytes })
	return boxes[:min(len(boxes), maxBoxes)]
}

func (c *Chart) cell(box *Box, top int64) *Cell {
	cell := &Cell{Left: c.x(box.First), Top: y(box.Offset+box.Bytes, top),
		Class: box.Class, Label: box.Label, Detail: box.Detail, Item: box.Item}
	cell.Width, cell.Height = c.x(box.Last+1)-cell.Left, max(y(box.Offset, top)-cell.Top, .8)
	if box.Conflict {
		cell.Class += " conflict"
	}
	return cell
}

// steps draws the time axis.
func (c *Chart) steps(b *strings.Builder) {
	n := len(c.Starts) - 1
	every := int(max(round(float64(n)/6), 1))
	for at := 0; at < n; at += every {
		fmt.Fprintf(b, `<text x="%.2f%%" y="%d" class="tick" text-anchor="middle">%d</text>`+"\n",
			(c.x(c.Starts[at])+c.x(c.Starts[at+1]))/2, plotHeight+15, at)
	}
	fmt.Fprintf(b, `<text x="50%%" y="%d" class="tick" text-anchor="middle">instruction</text>`+"\n", plotHeight+31)
}

// round returns the smallest power of two that is at least v.
func round(v float64) int64 {
	n := int64(1)
	for float64(n) < v && n < 1<<60 {
		n *= 2
	}
	return n
}
