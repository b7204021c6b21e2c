// Package chart draws memory plans: time from left to right, addresses upwards, one
// box for each storage.
package chart

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// Chart is a drawing of several plans of one method, side by side, on one scale.
type Chart struct {
	Title  string
	Steps  int   // instructions; time goes from -1 (inputs are set) to Steps (outputs are read)
	Bound  int64 // bytes that no plan can do without
	Plans  []Plan
	Legend []Class
}

// Class is a kind of box.
type Class struct {
	Name string // a word, also the name of the style
	Fill string // colour
}

// Plan is one placement.
type Plan struct {
	Name  string
	Size  int64 // bytes in all
	Boxes []Box
}

// Box is one storage: bytes Offset to Offset+Bytes, alive from step First to Last.
type Box struct {
	First, Last   int
	Offset, Bytes int64
	Label         string // short, drawn where it fits
	Detail        string // shown on hovering
	Class         string
	Conflict      bool // shares bytes with another box at the same time
}

// Sizes of the drawing, in pixels.
const (
	plotWidth  = 620
	plotHeight = 460
	marginLeft = 78
	marginTop  = 64
	gap        = 40
	footer     = 78
	charWidth  = 6.2 // of a label
	labelRoom  = 11  // least height of a box with a label
)

// WriteSVG writes the chart as an SVG document.
func (c *Chart) WriteSVG(w io.Writer) error {
	var b strings.Builder
	width := len(c.Plans)*(marginLeft+plotWidth+gap) + gap/2
	height := marginTop + plotHeight + footer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="11">`+"\n", width, height, width, height)
	b.WriteString(c.style())
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="24" class="title">%s</text>`+"\n", marginLeft, html.EscapeString(c.Title))
	top := c.top()
	for i := range c.Plans {
		p := panel{chart: c, plan: &c.Plans[i], left: float64(marginLeft + i*(marginLeft+plotWidth+gap)), top: top}
		p.draw(&b)
	}
	c.legend(&b, height-18)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteHTML writes a page that holds the chart and needs nothing else.
func (c *Chart) WriteHTML(w io.Writer) error {
	title := html.EscapeString(c.Title)
	if _, err := fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n"+
		"<style>body{margin:16px;background:#fff;font-family:system-ui,sans-serif;color:#222}p{max-width:60em}</style></head><body>\n"+
		"<p>Each box is a storage: its width is the time it is alive, in instructions, its height its bytes. "+
		"Point at a box for its values. The dashed line is the least that any plan needs.</p>\n", title); err != nil {
		return err
	}
	if err := c.WriteSVG(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</body></html>\n")
	return err
}

func (c *Chart) style() string {
	var b strings.Builder
	b.WriteString("<style>.title{font-size:16px;font-weight:600;fill:#222}.name{font-size:13px;font-weight:600;fill:#222}" +
		".tick{fill:#666}.grid{stroke:#e4e4e4}.frame{fill:none;stroke:#999}.peak{stroke:#b00020;stroke-width:1.5}" +
		".bound{stroke:#222;stroke-dasharray:5 4}.box{stroke:#fff;stroke-width:.7}.box:hover{stroke:#000;stroke-width:1.5}" +
		".conflict{stroke:#b00020;stroke-width:2}.label{fill:#111;font-size:10px;pointer-events:none}")
	for _, k := range c.Legend {
		fmt.Fprintf(&b, ".%s{fill:%s}", k.Name, k.Fill)
	}
	b.WriteString("</style>\n")
	return b.String()
}

// top is the number of bytes at the upper edge of all panels.
func (c *Chart) top() int64 {
	most := max(c.Bound, 1)
	for _, p := range c.Plans {
		most = max(most, p.Size)
	}
	return most + most/20 + 1
}

func (c *Chart) legend(b *strings.Builder, y int) {
	x := marginLeft
	for _, k := range c.Legend {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" class="%s"/><text x="%d" y="%d" class="tick">%s</text>`+"\n", x, y-10, k.Name, x+17, y, k.Name)
		x += 30 + int(charWidth*float64(len(k.Name))) + 14
	}
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" class="bound"/><text x="%d" y="%d" class="tick">lower bound, %s</text>`+"\n", x, x+24, y-4, y-4, x+30, y, Bytes(c.Bound))
	x += 30 + 170
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" class="peak"/><text x="%d" y="%d" class="tick">size of the plan</text>`+"\n", x, x+24, y-4, y-4, x+30, y)
}

// panel draws one plan.
type panel struct {
	chart *Chart
	plan  *Plan
	left  float64
	top   int64
}

func (p *panel) x(step float64) float64 {
	return p.left + (step+1)/float64(p.chart.Steps+2)*plotWidth
}

func (p *panel) y(bytes int64) float64 {
	return marginTop + plotHeight*(1-float64(bytes)/float64(p.top))
}

func (p *panel) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<text x="%.0f" y="48" class="name">%s: %s</text>`+"\n", p.left, html.EscapeString(p.plan.Name), Bytes(p.plan.Size))
	p.grid(b)
	boxes := slices.Clone(p.plan.Boxes)
	slices.SortStableFunc(boxes, func(a, b Box) int { return cmp.Compare(b.Bytes, a.Bytes) }) // small ones on top
	for _, box := range boxes {
		p.box(b, box)
	}
	p.line(b, p.plan.Size, "peak")
	p.line(b, p.chart.Bound, "bound")
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%d" height="%d" class="frame"/>`+"\n", p.left, marginTop, plotWidth, plotHeight)
}

func (p *panel) line(b *strings.Builder, bytes int64, class string) {
	y := p.y(bytes)
	fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="%s"/>`+"\n", p.left, p.left+plotWidth, y, y, class)
}

func (p *panel) box(b *strings.Builder, box Box) {
	x, y := p.x(float64(box.First)), p.y(box.Offset+box.Bytes)
	w, h := p.x(float64(box.Last+1))-x, p.y(box.Offset)-y
	class := "box " + box.Class
	if box.Conflict {
		class += " conflict"
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%s</title></rect>`+"\n",
		x, y, max(w, 1), max(h, .8), class, html.EscapeString(box.Detail))
	across, up := fit(box.Label, w-4), fit(box.Label, h-4)
	switch {
	case across != "" && h >= labelRoom:
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" class="label">%s</text>`+"\n", x+3, y+h/2+3.5, html.EscapeString(across))
	case up != "" && w >= labelRoom-3:
		fmt.Fprintf(b, `<text transform="translate(%.1f %.1f) rotate(-90)" class="label">%s</text>`+"\n", x+w/2+3, y+h-3, html.EscapeString(up))
	}
}

// fit cuts a label to a width, or leaves it out.
func fit(label string, width float64) string {
	n := int(width / charWidth)
	switch r := []rune(label); {
	case len(r) <= n:
		return label
	case n >= 4:
		return string(r[:n-1]) + "…"
	}
	return ""
}

func (p *panel) grid(b *strings.Builder) {
	for at, step := int64(0), round(float64(p.top)/6); at <= p.top; at += step {
		y := p.y(at)
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="grid"/><text x="%.1f" y="%.1f" class="tick" text-anchor="end">%s</text>`+"\n",
			p.left, p.left+plotWidth, y, y, p.left-6, y+4, Bytes(at))
	}
	for at, step := 0, int(max(round(float64(p.chart.Steps)/8), 1)); at < p.chart.Steps; at += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" class="tick" text-anchor="middle">%d</text>`+"\n", p.x(float64(at)+.5), marginTop+plotHeight+15, at)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d" class="tick" text-anchor="middle">instruction</text>`+"\n", p.left+plotWidth/2, marginTop+plotHeight+31)
}

// round is the next of 1, 2, 4, 8, … that is at least v.
func round(v float64) int64 {
	n := int64(1)
	for float64(n) < v && n < 1<<60 {
		n *= 2
	}
	return n
}

// Bytes writes a number of bytes with a binary unit.
func Bytes(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" || v >= 100 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
