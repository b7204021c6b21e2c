package chart

import (
	_ "embed" // script
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
)

// Script fits the labels of all drawings of a page to the page's width.
//
//go:embed chart.js
var Script string

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s</title>
<style>%s
body { margin: 12px; background: var(--paper); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; }
p { max-width: 60em; }
</style></head><body>
<p>Each box is a storage: its width is the time it is alive, in instructions, its height its bytes. Point at a box for more.
The red line is the size of the arenas, with state and scratch above it; the dashed line is the most bytes of storages that are alive at once, which
is the lower bound of the arenas for these lifetimes: only operators that write over their inputs would need less. The red band is the peak.</p>
`

// WriteHTML writes a self-contained page with the chart.
func (c *Chart) WriteHTML(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, html.EscapeString(c.Title), Style)
	for i := range c.Plans {
		fmt.Fprintf(&b, "<h3>%s</h3>\n%s", html.EscapeString(c.Plans[i].Name), c.Panel(i))
	}
	b.WriteString(c.Legend())
	fmt.Fprintf(&b, "<script>%s</script></body></html>\n", Script)
	_, err := io.WriteString(w, b.String())
	return err
}

// Legend returns the legend as an element of a page with [Style].
func (c *Chart) Legend() string {
	var b strings.Builder
	b.WriteString(`<p class="legend">`)
	for _, class := range c.classes() {
		fmt.Fprintf(&b, `<svg class="chart" width="12" height="12"><rect width="12" height="12" class="%s"/></svg> %s `, class, class)
	}
	fmt.Fprintf(&b, `<svg class="chart" width="24" height="12"><line x2="24" y1="7" y2="7" class="bound"/></svg> alive at most %s</p>`+"\n",
		bytesize.Format(c.Bound))
	return b.String()
}
