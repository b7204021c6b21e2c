package chart

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Cell is a box with a label. Left and Width are percentages of the drawing's width, Top and
// Height are pixels.
type Cell struct {
	Left, Width float64
	Top, Height float64
	Class       string // CSS class
	Label       string // truncated to fit
	Detail      string // tooltip
	Item        string // data-item, for scripts; empty for none
}

// charWidth is the width of a character of a label, in pixels.
const charWidth = 6.2

// write draws the cell. Its label fits a drawing of the given width in pixels; data-label has
// the full text for scripts that know the real width.
func (c *Cell) write(b *strings.Builder, width float64) {
	fmt.Fprintf(b, `<svg class="cell" x="%.3f%%" y="%.1f" width="%.3f%%" height="%.1f" data-label="%s"%s><title>%s</title>`+
		`<rect class="box %s" width="100%%" height="100%%"/>`,
		c.Left, c.Top, c.Width, c.Height, attribute(c.Label), c.item(), attribute(c.Detail), c.Class)
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

func (c *Cell) item() string {
	if c.Item == "" {
		return ""
	}
	return ` data-item="` + attribute(c.Item) + `"`
}

// WriteArea draws cells as an element of the given size in pixels. A page with [Style] may
// scale its width.
func WriteArea(b *strings.Builder, height, width float64, cells []Cell) {
	fmt.Fprintf(b, `<svg class="chart" width="%.0f" height="%.0f">`+"\n", width, height)
	for i := range cells {
		cells[i].write(b, width)
	}
	b.WriteString("</svg>\n")
}

// attribute escapes text for XML, also between quotes.
func attribute(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == utf8.RuneError || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, text))
}

// fit truncates a label to a width, or drops it.
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

// Short returns the short name of an operator or delegate for labels: without namespace and
// overload, or backend.
func Short(name string) string {
	if _, operator, ok := strings.Cut(name, "::"); ok && operator != "" {
		name, _, _ = strings.Cut(operator, ".")
		return name
	}
	name, _, _ = strings.Cut(name, ", ")
	return name
}
