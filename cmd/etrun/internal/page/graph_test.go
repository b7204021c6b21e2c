//go:build unix

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/browsertest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
)

// view returns the page of the graphs of programs.
func view(t *testing.T, names []string, options ...etrun.Option) string {
	t.Helper()
	v := &View{Version: "etrun test"}
	var programs []*graph.Program
	for _, name := range names {
		p := open(t, name, options...)
		described, err := New(t.Context(), p, name, "")
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.New(t.Context(), p, name, false)
		if err != nil {
			t.Fatal(err)
		}
		g.Form = "as in the file"
		v.Pages, programs = append(v.Pages, described), append(programs, g)
	}
	if len(programs) == 2 {
		graph.Compare(programs[0], programs[1])
	}
	element, err := graph.Element(programs, true)
	if err != nil {
		t.Fatal(err)
	}
	v.Graph = Markup(element)
	var b strings.Builder
	if err := v.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// openText opens a page in a browser.
func openText(t *testing.T, text string, width int) *browsertest.Browser {
	t.Helper()
	return browsertest.Open(t, written(t, text), width)
}

// written returns the path of a page with the text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inWidths plays a page in windows of two widths, those of a desk and of a phone.
func inWidths(t *testing.T, text string, play func(b *browsertest.Browser)) {
	t.Helper()
	path := written(t, text)
	b := browsertest.Open(t, path, 1280)
	play(b)
	b.Visit(path, 390)
	play(b)
}

// Parts of steps.
const (
	chosen   = "document.querySelector('canvas').dataset.selected"
	panel    = "document.querySelector('.graph-side').textContent"
	search   = "(w => { const s = document.querySelector('[data-graph=search]'); s.value = w; s.dispatchEvent(new Event('input')) })"
	key      = "(k => document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: k, cancelable: true})))"
	enter    = "document.querySelector('[data-graph=search]').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))"
	fits     = "document.documentElement.scrollWidth <= innerWidth"
	isMarked = "document.querySelectorAll('.cell.picked').length"
)

func TestGraphInBrowser(t *testing.T) {
	inWidths(t, view(t, []string{"digits/xnnpack.pte"}), func(b *browsertest.Browser) {
		b.Play([]browsertest.Step{
			{"the page is ready", "", "document.querySelector('.graph').dataset.ready", "yes"},
			{"fits the window", "", fits, "true"},
			{"the first nodes are drawn", "", "Number(document.querySelector('canvas').dataset.drawn) > 3", "true"},
			{"the form", "", "document.querySelector('.graph-view h4').textContent", "xnnpack.pte as in the file"},
			{"a legend", "", "[...document.querySelectorAll('.graph-key')].map(k => k.textContent).join()", "input,delegate,product,reduce,move,output,selected,found"},
			{"the scale of texts", "", "Number(document.querySelector('canvas').dataset.scale) >= 0.85", "true"},
			{"nothing is selected", "", panel + ".includes('method forward')", "true"},
			{"search", search + "('conv2d')", "Number(document.querySelector('[data-graph=found]').textContent.split(' ')[0])", "4"},
			{"the first hit", enter, chosen, "0.0"},
			{"its constants", "", panel + ".includes('filter float32')", "true"},
			{"a histogram", "document.querySelector('.graph-constant').open = true", "document.querySelectorAll('.graph-histogram rect').length", "32"},
			{"its attributes", "", panel + ".includes('stride[1, 1]') && " + panel + ".includes('groups')", "true"},
			{"the file of the constant", "window.made = []; URL.createObjectURL = b => { made.push(b); return 'blob:x' };" +
				" HTMLAnchorElement.prototype.click = function () { made.push(this.download) };" +
				" [...document.querySelectorAll('.graph-side button')].find(b => b.textContent.includes('.npy')).click()",
				"made[1] + ' ' + made[0].size", "0.0.filter.npy 704"},
			{"it is NumPy's", "made[0].text().then(t => { window.start = t.slice(1, 6) })", "window.start", "NUMPY"},
			{"a link to it", "", "location.hash", "#node=0/0/0.0"},
			{"the next hit", enter, chosen, "0.1"},
			{"down along the value", key + "('ArrowDown')", chosen, "0.2"},
			{"up again", key + "('ArrowUp')", chosen, "0.1"},
			{"a link", "location.hash = '#node=0/0/0'", chosen, "0"},
			{"its boxes in the plan", "", isMarked + " > 0", "true"},
			{"the panel leads to the box", "[...document.querySelectorAll('.graph-side .graph-link')].find(b => b.textContent.includes('1x10')).click()",
				"document.querySelector('main .detail').textContent.includes('bytes')", "true"},
			{"fold", key + "('Enter')", "Number(document.querySelector('canvas').dataset.drawn)", "3"},
			{"unfold", key + "('Enter')", "Number(document.querySelector('canvas').dataset.drawn) > 3", "true"},
			{"a link to nothing", "location.hash = '#node=7/x/%E0'", chosen, "0"},
			{"no selection", key + "('Escape')", chosen, ""},
			{"everything", "document.querySelector('[data-graph=fit]').click()", "Number(document.querySelector('canvas').dataset.drawn)", "13"},
			{"dark", "document.getElementById('theme').click()", "getComputedStyle(document.querySelector('.graph-side')).backgroundColor", "rgb(20, 23, 26)"},
		})
		b.Play([]browsertest.Step{{"a node in the middle", search + "('conv2d'); " + enter, chosen, "0.0"}, {"nothing selected", key + "('Escape')", chosen, ""}})
		b.Drag("canvas", [2]float64{.5, .5})
		b.Play([]browsertest.Step{{"press on it", "", chosen, "0.0"}})
	})
}

func TestTwoGraphsInBrowser(t *testing.T) {
	text := view(t, []string{"digits/portable.pte", "digits/xnnpack.pte"}, etrun.WithLowering(etrun.LowerOff))
	inWidths(t, text, func(b *browsertest.Browser) {
		b.Play([]browsertest.Step{
			{"fits the window", "", fits, "true"},
			{"a legend of marks", "", "[...document.querySelectorAll('.graph-key')].map(k => k.textContent).join().includes('only here,changed,selected')", "true"},
			{"two drawings", "", "[...document.querySelectorAll('canvas')].filter(c => c.dataset.drawn > 0).length", "2"},
			{"differences are counted", "", panel + ".includes('only here')", "true"},
			{"the next change", "document.querySelector('[data-graph=change]').click()", chosen + " !== ''", "true"},
			{"a counterpart is selected with it", search + "('convolution'); " + enter, "document.querySelectorAll('canvas')[1].dataset.selected", "0.0"},
			{"its arguments", "", panel + ".includes('stride[1, 1]')", "true"},
		})
	})
}

// TestConstantInBrowser has the distribution of a quantized constant: as stored, and dequantized, and that it is a sample.
func TestConstantInBrowser(t *testing.T) {
	p := &graph.Program{Name: "x", Constants: []graph.Constant{{Name: "w", Type: "int4 8x8192", Bytes: 32768,
		Histogram: &graph.Histogram{Total: 65536, Count: 100, Min: -8, Max: 7, Bins: []int{60, 40}}, Real: &graph.Histogram{Total: 65536, Count: 100, Min: -0.5, Max: 0.25, Bins: []int{60, 40}}}},
		Methods: []*graph.Method{{Name: "forward", Nodes: []graph.Node{{ID: "0", Kind: "operator", Name: "embedding", Fault: "operator missing in this build",
			Constants: []graph.Use{{Name: "weight"}}}},
			Sheets: []graph.Sheet{{Nodes: []int{0}, Edges: []graph.Edge{}, Ranks: 1, Rank: []int{0}, X: []float64{50}, Width: 100}}}}}
	element, err := graph.Element([]*graph.Program{p}, true)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := (&View{Graph: Markup(element)}).Write(&b); err != nil {
		t.Fatal(err)
	}
	inWidths(t, b.String(), func(b *browsertest.Browser) {
		b.Play([]browsertest.Step{
			{"the missing operator is explained", "", "[...document.querySelectorAll('.graph-key')].map(k => k.textContent).join()", "element,missing here,selected,found"},
			{"its constant", search + "('embedding'); " + enter, "document.querySelectorAll('.graph-constant').length", "1"},
			{"a sample", "document.querySelector('.graph-constant').open = true", panel + ".includes('-8 to 7') && " + panel + ".includes('sample of 100 of 65536 elements')", "true"},
			{"dequantized", "document.querySelector('.graph-constant input').click()", panel + ".includes('-0.5 to 0.25')", "true"},
			{"a command for the file", "", panel + ".includes('etrun inspect x --weight \"w\" -o weight.npy')", "true"},
			{"fits the window", "", fits, "true"},
		})
		b.Shot("constant")
	})
}

// TestLargeTables has tables and drawings that are drawn when they are seen, or when they are searched.
func TestLargeTables(t *testing.T) {
	p := describe(t, "digits/portable.pte")
	for i := range 4000 {
		p.Weights.Rows = append(p.Weights.Rows, Weight{Name: fmt.Sprintf("weight %d", i), Type: "float32 1"})
	}
	m := p.Methods[0]
	cell := `<svg class="cell" data-label="box"><title>box 1 bytes</title></svg>`
	m.Plans[0].Drawing = Markup(`<svg class="chart">` + strings.Repeat(cell, 4000) + `</svg>`)
	const rows, boxes = "document.querySelectorAll('#weights tr.hit').length", "document.querySelectorAll('.cell').length"
	openText(t, text(t, p), 1280).Play([]browsertest.Step{
		{"few rows", "", rows + " < 500", "true"},
		{"no box of the plan", "", boxes + " < 4000", "true"},
		{"the last rows when seen", "document.querySelector('footer').scrollIntoView()", "document.body.textContent.includes('weight 3999') && " + rows + " > 100", "true"},
		{"all rows when searched", "scrollTo(0, 0); " + strings.ReplaceAll(search, "[data-graph=search]", "#search") + "('weight 2345')",
			"document.getElementById('found').textContent", "1 found"},
		{"all boxes", "", boxes + " >= 4000", "true"},
	})
}

// Names of a file are text on the page.
func TestHostileGraph(t *testing.T) {
	p := &graph.Program{Name: hostile, Constants: []graph.Constant{{Name: hostile, Type: hostile}}, Methods: []*graph.Method{{Name: hostile, Fault: hostile,
		Nodes: []graph.Node{{ID: hostile, Kind: hostile, Class: hostile, Name: hostile, Full: hostile, Layer: hostile, Source: hostile, Result: hostile,
			Args: []graph.Fact{{hostile, hostile}}, Facts: []graph.Fact{{hostile, hostile}}, Constants: []graph.Use{{Name: hostile}}}},
		Sheets: []graph.Sheet{{Nodes: []int{0}, Edges: []graph.Edge{}, Ranks: 1, Rank: []int{0}, X: []float64{50}, Width: 100}}}}}
	element, err := graph.Element([]*graph.Program{p, p}, true)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := (&View{Version: hostile, Pages: []*Page{{Name: hostile}}, Graph: Markup(element)}).Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<img", "</script></style>", "<!--"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q is there", bad)
		}
	}
	openText(t, b.String(), 800).Play([]browsertest.Step{
		{"the page is ready", "", "document.querySelector('.graph').dataset.ready", "yes"},
		{"its texts are shown", search + "('img'); " + enter, panel + ".includes('onerror')", "true"},
		{"and nothing else", "document.querySelectorAll('details').forEach(d => d.open = true)", "document.images.length", "0"},
	})
}
