package chart

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Cell is a box with a label. Left and Width are parts of the drawing's width in per cent,
// Top and Height are pixels.
type Cell struct {
	Left, Width float64
	Top, Height float64
	Class       string // of the style
	Label       string // drawn where it fits, or cut
	Detail      string // shown on hovering
}

// charWidth is that of a letter of a label, in pixels.
const charWidth = 6.2

// write draws the cell. Its label is the one for a drawing of so many pixels; data-label has
// it for scripts that know the width.
func (c *Cell) write(b *strings.Builder, width float64) {
	fmt.Fprintf(b, `<svg class="cell" x="%.3f%%" y="%.1f" width="%.3f%%" height="%.1f" data-label="%s"><title>%s</title>`+
		`<rect class="box %s" width="100%%" height="100%%"/>`,
		c.Left, c.Top, c.Width, c.Height, attribute(c.Label), attribute(c.Detail), c.Class)
	w := c.Width / 100 * width
	along, up := fit(c.Label, w-8), fit(c.Label, c.Height-8)
	switch {
	case along != "" && c.Height >= 13:
		fmt.Fprintf(b, `<text class="label" x="4" y="%.1f">%s</text>`, c.Height/2+4, attribute(along))
	case up != "" && w >= 11:
		fmt.Fprintf(b, `<svg class="up" x="50%%" overflow="visible">`+
			`<text class="label" transform="translate(4 %.1f) rotate(-90)">%s</text></svg>`, c.Height-4, attribute(up))
	}
	b.WriteString("</svg>\n")
}

// WriteArea draws cells as an element of so many pixels. A page that has [Style] may make it
// as wide as it wants.
func WriteArea(b *strings.Builder, height, width float64, cells []Cell) {
	fmt.Fprintf(b, `<svg class="chart" width="%.0f" height="%.0f">`+"\n", width, height)
	for i := range cells {
		cells[i].write(b, width)
	}
	b.WriteString("</svg>\n")
}

// attribute is text as XML allows it, also between quotes.
func attribute(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == utf8.RuneError || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, text))
}

// fit cuts a label to a width, or leaves it out.
func fit(label string, width float64) string {
	n := int(width / charWidth)
	switch r := []rune(label); {
	case len(r) <= n:
		return label
	case n >= 5:
		return string(r[:n-1]) + "…"
	}
	return ""
}

// Short is the name of an operator or delegate as a label has it: without the namespace and
// overload, or the backend, which most of a program share.
func Short(name string) string {
	if _, operator, ok := strings.Cut(name, "::"); ok && operator != "" {
		name, _, _ = strings.Cut(operator, ".")
		return name
	}
	name, _, _ = strings.Cut(name, ", ")
	return name
}
