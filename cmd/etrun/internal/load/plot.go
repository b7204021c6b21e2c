package load

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// plot is a drawing of lines.
type plot struct {
	title, x, y string
	ticks       []tick // of the horizontal axis; nil for numbers from 0
	lines       []line
}

// tick is a mark of an axis.
type tick struct {
	at   float64
	text string
}

// line is a series of points with its name.
type line struct {
	name   string
	points []point
}

// point is a point of a line, with the bounds of its vertical interval if it has one, and a text for the mouse.
type point struct {
	x, y, low, high float64
	text            string
}

// Sizes of a drawing, in pixels before it is scaled.
const (
	plotWidth  = 560
	plotHeight = 280
	plotLeft   = 62
	plotRight  = 20
	plotTop    = 10
	plotFoot   = 38

	kinds = 8 // colors of lines
)

// frame converts points to positions.
type frame struct{ left, right, top float64 }

func (f *frame) x(x float64) float64 {
	return plotLeft + (x-f.left)/(f.right-f.left)*(plotWidth-plotLeft-plotRight)
}

func (f *frame) y(y float64) float64 {
	return plotHeight - plotFoot - y/f.top*(plotHeight-plotFoot-plotTop)
}

// frame returns the frame that holds all points.
func (p *plot) frame() frame {
	f := frame{}
	for _, l := range p.lines {
		for _, at := range l.points {
			f.right, f.top = max(f.right, at.x), max(f.top, at.y, at.high)
		}
	}
	if n := len(p.ticks); n > 0 {
		f.left, f.right = p.ticks[0].at, max(p.ticks[n-1].at, f.right)
	} else {
		f.right = above(f.right)
	}
	f.top = above(f.top)
	return f
}

// above returns the end of an axis for numbers up to one.
func above(x float64) float64 {
	step := step(x)
	return math.Max(math.Ceil(x/step), 1) * step
}

// step returns the distance between marks of an axis up to a number: 1, 2 or 5 times a power of ten.
func step(x float64) float64 {
	if !(x > 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(x/5)))
	for _, n := range []float64{1, 2, 5} {
		if x/(n*unit) <= 6 {
			return n * unit
		}
	}
	return 10 * unit
}

// numbers returns the marks of an axis from 0.
func numbers(end float64) (list []tick) {
	s := step(end)
	for i := 0; float64(i)*s <= end*1.0001; i++ {
		list = append(list, tick{float64(i) * s, strconv.FormatFloat(float64(i)*s, 'g', 6, 64)})
	}
	return list
}

// svg returns the drawing as an element.
func (p *plot) svg() string {
	var b strings.Builder
	f := p.frame()
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight, html.EscapeString(p.title))
	p.axes(&b, &f)
	for i, l := range p.lines {
		l.draw(&b, &f, i%kinds)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *plot) axes(b *strings.Builder, f *frame) {
	for _, t := range numbers(f.top) {
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, f.y(t.at), plotLeft-6, f.y(t.at)+4, t.text)
	}
	ticks := p.ticks
	if ticks == nil {
		ticks = numbers(f.right)
	}
	for _, t := range ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1[1]f" y1="%d" y2="%d"/>`, f.x(t.at), plotTop, plotHeight-plotFoot)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, f.x(t.at), plotHeight-plotFoot+15, html.EscapeString(t.text))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, (plotLeft+plotWidth-plotRight)/2, plotHeight-4,
		html.EscapeString(p.x))
	fmt.Fprintf(b, `<text transform="translate(12 %d) rotate(-90)" text-anchor="middle">%s</text>`, (plotTop+plotHeight-plotFoot)/2,
		html.EscapeString(p.y))
}

func (l *line) draw(b *strings.Builder, f *frame, kind int) {
	if len(l.points) > 1 {
		fmt.Fprintf(b, `<polyline class="line k%d" style="fill:none" points="`, kind)
		for _, at := range l.points {
			fmt.Fprintf(b, "%.1f,%.1f ", f.x(at.x), f.y(at.y))
		}
		b.WriteString(`"/>`)
	}
	for _, at := range l.points {
		if at.high > 0 {
			fmt.Fprintf(b, `<line class="bar k%d" x1="%.1f" x2="%.1[2]f" y1="%.1f" y2="%.1f"/>`, kind, f.x(at.x), f.y(at.low), f.y(at.high))
		}
		fmt.Fprintf(b, `<circle class="k%d" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, kind, f.x(at.x), f.y(at.y),
			html.EscapeString(at.text))
	}
}

// key returns the names of the lines with their colors.
func (p *plot) key() string {
	var b strings.Builder
	b.WriteString(`<div class="key">`)
	for i, l := range p.lines {
		fmt.Fprintf(&b, `<span><svg width="12" height="12"><circle class="k%d" cx="6" cy="6" r="4"/></svg>%s</span>`, i%kinds,
			html.EscapeString(l.name))
	}
	b.WriteString("</div>\n")
	return b.String()
}
