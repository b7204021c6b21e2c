package graph

import (
	_ "embed" // style and scripts
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"strings"
)

// Style is the style sheet of the element that [Element] writes, in addition to that of package chart.
//
//go:embed graph.css
var Style string

//go:embed view.js
var viewJS string

//go:embed paint.js
var paintJS string

//go:embed panel.js
var panelJS string

//go:embed graph.js
var graphJS string

// Script returns the script of a page with the element.
func Script() string { return viewJS + paintJS + panelJS + graphJS }

const elementHead = `<div class="graph%s">
<div class="graph-bar">
<select data-graph="method" aria-label="method"></select>
<input data-graph="search" type="search" placeholder="search the graph" aria-label="search the graph">
<output data-graph="found"></output>
<select data-graph="colour" aria-label="colour by"></select>
<button type="button" data-graph="unfold">unfold</button>
<button type="button" data-graph="fold">fold</button>
<button type="button" data-graph="fit">fit</button>
<button type="button" data-graph="larger" aria-label="larger">+</button>
<button type="button" data-graph="smaller" aria-label="smaller">−</button>
`

// Element returns the element of the graphs of one program, or of two side by side. A page has at most one. full makes
// it as high as the window.
func Element(programs []*Program, full bool) (string, error) {
	text, err := json.Marshal(programs) // with < as \u003c: no text ends the script
	if err != nil {
		return "", err
	}
	class := ""
	if full {
		class = " graph-full"
	}
	var b strings.Builder
	b.WriteString(strings.Replace(elementHead, "%s", class, 1))
	if len(programs) > 1 {
		b.WriteString(`<button type="button" data-graph="change">next change</button>` + "\n")
	}
	b.WriteString("</div>\n<div class=\"graph-legend\" data-graph=\"legend\" aria-label=\"legend\"></div>\n<div class=\"graph-body\">\n<div class=\"graph-views\">\n")
	for _, p := range programs {
		b.WriteString(`<div class="graph-view">`)
		b.WriteString("<h4>" + html.EscapeString(p.Name) + " <span class=\"graph-soft\">" + html.EscapeString(p.Form) + "</span></h4>")
		b.WriteString(`<canvas tabindex="0" role="application"></canvas></div>` + "\n")
	}
	b.WriteString("</div>\n<aside class=\"graph-side\">\n<div class=\"graph-results\" data-graph=\"results\" hidden></div>\n" +
		"<div data-graph=\"panel\" aria-live=\"polite\"></div>\n</aside>\n</div>\n</div>\n<script type=\"application/json\" id=\"graph-data\">")
	b.Write(text)
	b.WriteString("</script>\n")
	for i, p := range programs {
		for k := range p.Constants {
			if c := &p.Constants[k]; c.Saved {
				fmt.Fprintf(&b, "<script type=\"text/plain\" data-weight=\"%d/%d\">%s</script>\n", i, k, base64.StdEncoding.EncodeToString(c.file))
			}
		}
	}
	return b.String(), nil
}
