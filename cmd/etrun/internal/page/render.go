package page

import (
	"bufio"
	"fmt"
	"html"
	"io"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/internal/duration"
)

// writer writes a page. Package html/template would do the same, but it calls methods by
// name: linking it keeps every exported method of every package in the executable.
type writer struct{ to *bufio.Writer }

// Write writes the page.
func (p *Page) Write(to io.Writer) error {
	w := writer{bufio.NewWriter(to)}
	w.header(p)
	if p.Graph != "" {
		w.put("<section id=\"graph\">\n<h2>graph</h2>\n%s</section>\n", p.Graph)
	}
	for i, m := range p.Methods {
		w.method(i, m)
	}
	w.weights(&p.Weights)
	w.put("</main>\n<footer>made by %s</footer>\n<script>%s</script>\n</body>\n</html>\n", p.Version,
		Markup(chart.Script+pageJS+graph.Script()))
	return w.to.Flush() // with the first error of any write
}

// put formats like fmt.Printf. It escapes all arguments except Markup, integers and floats.
// Verbs stand in text or between double quotes.
func (w writer) put(format string, args ...any) {
	for i, a := range args {
		switch a.(type) {
		case Markup, int, int64, float64:
		default:
			args[i] = html.EscapeString(fmt.Sprint(a))
		}
	}
	fmt.Fprintf(w.to, format, args...) // bufio.Writer keeps the error
}

// documentHead begins a page that loads nothing: neither from this machine nor from others.
const documentHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>%[1]s</title>
<style>%[2]s</style>
</head>
`

const pageHead = documentHead + `<body>
<header>
<h1>%[1]s</h1>
<div class="tools">
<input id="search" type="search" placeholder="search the tables: operator, shape, weight …" aria-label="search">
<output id="found" for="search"></output>
<button id="theme" type="button">light or dark</button>
</div>
<nav>
`

func (w writer) header(p *Page) {
	w.put(pageHead, p.Name, Markup(chart.Style+pageCSS+graph.Style))
	if p.Graph != "" {
		w.put("<a href=\"#graph\">graph</a>\n")
	}
	for i, m := range p.Methods {
		w.put(`<a href="#method%d">%s</a>`+"\n", i, m.Name)
	}
	w.put("<a href=\"#weights\">weights</a>\n</nav>\n</header>\n<main>\n")
	w.facts(p.Facts)
	for _, note := range p.Notes {
		w.put("<p class=\"note\">%s</p>\n", note)
	}
}

func (w writer) facts(list []Fact) {
	if len(list) == 0 {
		return
	}
	w.put(`<dl class="facts">`)
	w.terms(list)
	w.put("</dl>\n")
}

func (w writer) terms(list []Fact) {
	for _, f := range list {
		w.put("<dt>%s</dt><dd>%s</dd>\n", f.Name, f.Text)
	}
}

func (w writer) method(i int, m *Method) {
	w.put("<section id=\"method%d\">\n<h2>method %s</h2>\n", i, m.Name)
	if m.Fault != "" {
		w.put("<p class=\"fault\">does not run here: %s</p>\n", m.Fault)
	}
	w.facts(m.Facts)
	w.profile(m.Profile)
	w.memory(m, fmt.Sprintf("0/%d", i))
	w.put("</section>\n")
}

func (w writer) profile(p *Profile) {
	if p == nil {
		return
	}
	w.put("<h3>where the time goes</h3>\n<p>%s, median %s, maximum %s.</p>\n<div class=\"fill\">%s</div>\n",
		cli.Count(p.Runs, "run", "runs"), duration.Format(p.Median), duration.Format(p.Max), later(p.Flame))
	w.times(p.Rows, true)
}

const memoryHead = `<h3>memory</h3>
<p>Each box is a storage: as wide as the time it is alive, as high as its bytes. The red line is the size of the arenas, with state and
scratch above it; the dashed line is the most bytes of storages that are alive at once, the lower bound of the arenas for these lifetimes: only
operators that write over their inputs would need less. The red band is the peak.</p>
`

// Parts of a page above these sizes are drawn when they are seen: of drawings, in bytes, and of tables.
const (
	maxDrawing = 100_000
	maxRows    = 100
)

// later returns a drawing, or a part of the page that becomes it.
func later(drawing Markup) Markup {
	if len(drawing) <= maxDrawing {
		return drawing
	}
	return `<div class="later"><script type="text/html">` + drawing + `</script></div>`
}

// rows writes n rows, each of the usual height, as bodies of a table.
func (w writer) rows(n int, row func(i int)) {
	for i := range n {
		last := min(n, (i/maxRows+1)*maxRows)
		switch {
		case i == 0:
			w.put("<tbody>\n")
		case i%maxRows == 0:
			w.put("<tbody class=\"later\"><tr style=\"height:%dpx\"></tr><script type=\"text/html\">\n", 24*(last-i))
		}
		row(i)
		if i+1 == last && i < maxRows {
			w.put("</tbody>\n")
		} else if i+1 == last {
			w.put("</script></tbody>\n")
		}
	}
}

// memory writes the plans. name is that of the method's graph for scripts: program/method.
func (w writer) memory(m *Method, name string) {
	if len(m.Plans) == 0 {
		return
	}
	w.put(memoryHead)
	open := " open"
	w.put("<div data-plan=\"%s\">\n", name)
	for _, plan := range m.Plans {
		w.put("<details class=\"other\"%s><summary><span class=\"op\">%s</span></summary>%s</details>\n", Markup(open), plan.Name, later(plan.Drawing))
		open = ""
	}
	w.put("</div>\n%s\n<p class=\"detail\" aria-live=\"polite\">Point at a box, or press on it, for more.</p>\n", m.Legend)
	if len(m.AtPeak) > 0 {
		w.peak(m)
	}
}

func (w writer) peak(m *Method) {
	when := "when inputs are set"
	if m.Peak.Step >= 0 {
		when = "instruction " + m.Peak.String()
	}
	w.put("<h4>at the peak, %s: %s with scratch</h4>\n<table class=\"peak\">\n", when, bytesize.Format(m.PeakBytes))
	w.put("<thead><tr><th>name</th><th>type</th><th>bytes</th><th></th><th>alive</th></tr></thead>\n")
	w.rows(len(m.AtPeak), func(i int) {
		l := &m.AtPeak[i]
		name := l.Name
		if l.Kind != "activation" {
			name += " (" + l.Kind + ")"
		}
		w.put("<tr class=\"hit\"><td>%s</td><td>%s</td><td>%s</td><td><meter value=\"%v\"></meter></td><td>%s to %s</td></tr>\n",
			name, l.Type, bytesize.Format(l.Bytes), part(l.Bytes, m.PeakBytes), l.First.String(), l.Last.String())
	})
	w.put("</table>\n")
}

// times writes a table of times, with the parts of each row or without.
func (w writer) times(rows []profile.Row, parts bool) {
	w.put("<table class=\"times\">\n" +
		"<thead><tr><th>name</th><th>median</th><th>share</th><th>maximum</th><th>calls</th></tr></thead>\n")
	w.rows(len(rows), func(i int) {
		w.row(&rows[i], "hit")
		if parts {
			for k := range rows[i].Parts {
				w.row(&rows[i].Parts[k], "hit part")
			}
		}
	})
	w.put("</table>\n")
}

func (w writer) row(r *profile.Row, class string) {
	w.put("<tr class=\"%s\"><td>%s</td><td>%s</td><td><meter value=\"%v\"></meter> %s</td><td>%s</td><td>%v</td></tr>\n",
		class, r.Name, duration.Format(r.Median), r.Share, percent(r.Share), duration.Format(r.Max), r.Calls)
}

func (w writer) weights(list *Weights) {
	w.put("<section id=\"weights\">\n<h2>weights</h2>\n<p>%s, %s in all.",
		cli.Count(len(list.Rows), "constant", "constants"), bytesize.Format(list.Total))
	if list.Left > 0 {
		w.put(" The smallest %d are not shown.", list.Left)
	}
	w.put("</p>\n")
	if len(list.Rows) > 0 {
		w.put("<table class=\"weights\">\n" +
			"<thead><tr><th>name</th><th>type</th><th>bytes</th><th></th><th>used by</th><th>from</th></tr></thead>\n")
		w.rows(len(list.Rows), func(i int) {
			r := &list.Rows[i]
			w.put("<tr class=\"hit\"><td>%s</td><td>%s</td><td>%s</td><td><meter value=\"%v\"></meter></td><td>%s</td><td>%s</td></tr>\n",
				r.Name, r.Type, bytesize.Format(r.Bytes), part(r.Bytes, list.Total), r.Users, r.From)
		})
		w.put("</table>")
	}
	w.put("</section>\n")
}
