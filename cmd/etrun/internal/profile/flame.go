package profile

import (
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/internal/duration"
)

// Sizes of the drawing, in pixels.
const (
	flameRow = 22.0
	flameTop = 30.0
)

// WriteFlame draws profiles, one below the other: the method, its instructions from left to
// right, and their nodes, with widths proportional to their time.
func WriteFlame(w io.Writer, profiles []*Profile) error {
	const width = 1200
	var body strings.Builder
	y := 8.0
	for _, p := range profiles {
		fmt.Fprintf(&body, `<text x="10" y="%g" class="title">%s</text>`+"\n", y+16, html.EscapeString(cut(p.title(), 160)))
		cells := p.Flame()
		height := flameRow * float64(p.depth())
		fmt.Fprintf(&body, `<svg x="10" y="%g" width="%d" height="%g">`, y+flameTop, width-20, height)
		chart.WriteArea(&body, height, width-20, cells)
		body.WriteString("</svg>\n")
		y += flameTop + height + 12
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%d" height="%g" viewBox="0 0 %[1]d %[2]g">`+"\n"+
		`<style>%[3]s</style><rect class="paper" width="100%%" height="100%%"/>`+"\n%[4]s</svg>\n", width, y, chart.Style, body.String())
	return err
}

func (p *Profile) title() string {
	runs := "1 run"
	if p.Runs != 1 {
		runs = fmt.Sprintf("%d runs", p.Runs)
	}
	return fmt.Sprintf("%s, %s: median %s, max %s", p.Method, runs, duration.Format(p.Median), duration.Format(p.Max))
}

// FlameHeight is the height of the drawing of [Profile.Flame], in pixels.
func (p *Profile) FlameHeight() float64 { return flameRow * float64(p.depth()) }

// depth is the number of rows of boxes.
func (p *Profile) depth() int {
	for i := range p.Rows {
		if len(p.Rows[i].Parts) > 0 {
			return 3
		}
	}
	return 2
}

// Flame returns the drawing as cells: the method above its instructions above their nodes.
func (p *Profile) Flame() []chart.Cell {
	whole := Row{Kind: "method", Name: p.Method, Share: 1, Median: p.Median, Max: p.Max, Node: -1, Instruction: -1, Calls: 1}
	cells := []chart.Cell{whole.cell(0, 0)}
	at := 0.0
	for i := range p.Rows {
		r := &p.Rows[i]
		cells = append(cells, r.cell(at, 1))
		part := at
		for k := range r.Parts {
			cells = append(cells, r.Parts[k].cell(part, 2))
			part += r.Parts[k].Share
		}
		at += r.Share
	}
	return slices.DeleteFunc(cells, func(c chart.Cell) bool { return c.Width < 0.004 })
}

// cell returns a box as wide as the row's share.
func (r *Row) cell(left float64, row int) chart.Cell {
	place := r.Place()
	if place != "" && r.Node < 0 {
		place = "instruction " + place
	}
	detail := strings.TrimSpace(cut(r.Name, 200)+"\n"+place) +
		fmt.Sprintf("\nmedian %s, max %s, %.1f %%", duration.Format(r.Median), duration.Format(r.Max), 100*r.Share)
	return chart.Cell{Left: 100 * left, Width: 100 * r.Share, Top: flameRow * float64(row), Height: flameRow,
		Class: r.class(), Label: cut(chart.Short(r.Name), 200), Detail: detail}
}

// class is the CSS class of a row's box: its kind, and a tint derived from its name.
func (r *Row) class() string {
	h := fnv.New32a()
	io.WriteString(h, r.Name)
	if tint := h.Sum32() % 4; tint > 0 && (r.Kind == "operator" || r.Kind == "node") {
		return fmt.Sprintf("%s tint%d", r.Kind, tint)
	}
	return r.Kind
}

// cut truncates text to at most n characters that XML allows.
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
