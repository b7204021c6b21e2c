package profile

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Sizes of the drawing.
const (
	flameWidth  = 1200.0
	flameRow    = 22.0
	flameTop    = 34.0
	flameChar   = 6.4 // width of a letter
	flameMargin = 10.0
)

// flameStyle is for light and dark pages.
const flameStyle = `<style>
svg{background:#fff;color:#1b1b1b}
text{font:11px system-ui,sans-serif;fill:#1b1b1b;pointer-events:none}
.title{font-size:14px;font-weight:600;fill:currentColor}
rect{stroke:#fff;stroke-width:.6}
rect:hover{stroke:#000;stroke-width:1.4}
.method{fill:#c9cdd2}.operator{fill:#8fbfe0}.delegate{fill:#f0b45c}.node{fill:#f6d58f}.outside{fill:#e4e4e4}
.move,.jump,.free{fill:#b6d7a8}
@media (prefers-color-scheme:dark){svg{background:#16181b;color:#e8e8e8}rect{stroke:#16181b}rect:hover{stroke:#fff}}
</style>
`

// WriteFlame draws profiles, one below the other: the method, its instructions from left to
// right, and their nodes, each as wide as its share of the run.
func WriteFlame(w io.Writer, profiles []*Profile) error {
	var b strings.Builder
	height := 0.0
	for _, p := range profiles {
		height += flameTop + flameRow*float64(p.depth()) + flameMargin
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="100%%" style="max-width:%gpx">`+"\n%s",
		flameWidth+2*flameMargin, height+flameMargin, 2*flameWidth, flameStyle)
	y := 0.0
	for _, p := range profiles {
		p.flame(&b, y)
		y += flameTop + flameRow*float64(p.depth()) + flameMargin
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// depth is the number of rows of boxes.
func (p *Profile) depth() int {
	for i := range p.Rows {
		if len(p.Rows[i].Parts) > 0 {
			return 3
		}
	}
	return 2
}

func (p *Profile) flame(b *strings.Builder, y float64) {
	fmt.Fprintf(b, `<text x="%g" y="%g" class="title">%s: median of %d runs %v, max %v</text>`+"\n", flameMargin, y+22,
		html.EscapeString(cut(p.Method, 80)), p.Runs, round(p.Median), round(p.Max))
	y += flameTop
	whole := Row{Kind: "method", Name: p.Method, Share: 1, Median: p.Median, Max: p.Max, Node: -1, Instruction: -1, Calls: 1}
	whole.box(b, flameMargin, y)
	x := flameMargin
	for i := range p.Rows {
		r := &p.Rows[i]
		r.box(b, x, y+flameRow)
		at := x
		for k := range r.Parts {
			r.Parts[k].box(b, at, y+2*flameRow)
			at += r.Parts[k].Share * flameWidth
		}
		x += r.Share * flameWidth
	}
}

// box draws a row as wide as its share, with its name where that fits.
func (r *Row) box(b *strings.Builder, x, y float64) {
	width := r.Share * flameWidth
	if width < 0.05 {
		return
	}
	place := r.Place()
	if place != "" && r.Node < 0 {
		place = "instruction " + place
	}
	fmt.Fprintf(b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" class="%s">`+
		"<title>%s\n%s\nmedian %v, max %v, %.1f %%</title></rect>\n",
		x, y, width, flameRow, r.Kind, html.EscapeString(cut(r.Name, 200)), place, r.Median.Round(time.Nanosecond), r.Max, 100*r.Share)
	if letters := int((width - 8) / flameChar); letters >= 4 {
		fmt.Fprintf(b, `<text x="%.2f" y="%.1f">%s</text>`+"\n", x+4, y+15, html.EscapeString(cut(r.Name, letters)))
	}
}

// cut leaves at most n letters that XML allows.
func cut(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:max(n-1, 1)]) + "…"
}
