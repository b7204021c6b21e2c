package chart

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

func sample() *Chart {
	return &Chart{
		Title: `a "model" <of> mine`, Starts: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Bound: 3 << 10, Peak: 2,
		Plans: []Plan{
			{Name: "plan of the file, <in use>", Size: 4 << 10, Boxes: []Box{
				{First: -1, Last: 2, Bytes: 1 << 10, Label: "x", Detail: "values [0]\nfloat32", Class: "input"},
				{First: 1, Last: 9, Offset: 1 << 10, Bytes: 3 << 10, Label: `a "long" <label>`, Detail: "<b>\x01", Class: "activation", Conflict: true},
				{First: -1, Last: 10, Offset: 4 << 10, Bytes: 1 << 10, Label: "cache", Class: "state"},
				{First: 3, Last: 3, Offset: 5 << 10, Bytes: 1 << 10, Label: "a label that does not fit into its box", Class: "scratch"},
			}},
			{Name: "own", Size: 3 << 10},
		},
	}
}

// elements parses a drawing as XML, which names from files must not break, and counts elements
// by class.
func elements(t *testing.T, text string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		tok, err := d.Token()
		if err == io.EOF {
			return count
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if e, ok := tok.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					count[e.Name.Local+"."+a.Value]++
				}
			}
		}
	}
}

func TestWellFormed(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	got := elements(t, b.String())
	for class, want := range map[string]int{"rect.box input": 1, "rect.box activation conflict": 1, "rect.box state": 1, "rect.box scratch": 1,
		"rect.peak": 2, "line.size": 2, "line.bound": 3, "text.label": 4} {
		if got[class] != want {
			t.Errorf("%s: %d, want %d", class, got[class], want)
		}
	}
	for _, want := range []string{"a &#34;model&#34; &lt;of&gt; mine", "alive at most 3.0 KiB", "&lt;b&gt;?",
		">a &#34;long&#34; &lt;label&gt;<", ">cache<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
}

// A drawing is as wide as the page, and nothing is outside.
func TestNothingBeyondTheWidth(t *testing.T) {
	c := sample()
	if at := c.x(c.Starts[10] + 1); at != 100 {
		t.Errorf("the end is at %g %%", at)
	}
	for _, box := range c.Plans[0].Boxes {
		cell := c.cell(&box, c.top(0))
		if cell.Left < 0 || cell.Left+cell.Width > 100.0001 {
			t.Errorf("%s: from %g to %g %%", box.Label, cell.Left, cell.Left+cell.Width)
		}
	}
}

// An instruction of several moments is as wide as these, and its number is in the middle.
func TestMoments(t *testing.T) {
	c := &Chart{Starts: []int{0, 1, 5, 6}, Peak: 3, Plans: []Plan{{Name: "own", Size: 64}}} // instruction 1 has four moments
	for _, tt := range []struct {
		first, last int
		left, width float64
	}{{-1, -1, 0, 12.5}, {0, 0, 12.5, 12.5}, {1, 4, 25, 50}, {2, 3, 37.5, 25}, {5, 6, 75, 25}} {
		if cell := c.cell(&Box{First: tt.first, Last: tt.last}, c.top(0)); cell.Left != tt.left || cell.Width != tt.width {
			t.Errorf("moments %d to %d: at %g %%, %g %% wide, want %g and %g", tt.first, tt.last, cell.Left, cell.Width, tt.left, tt.width)
		}
	}
	for _, want := range []string{`<rect x="50.000%" width="12.500%" height="340" class="peak"/>`,
		`<text x="18.75%" y="355" class="tick" text-anchor="middle">0<`,
		`<text x="50.00%" y="355" class="tick" text-anchor="middle">1<`, `<text x="81.25%" y="355" class="tick" text-anchor="middle">2<`} {
		if !strings.Contains(c.Panel(0), want) {
			t.Errorf("no %q", want)
		}
	}
}

// Huge sizes in a file do not make a huge drawing.
func TestHugeSizes(t *testing.T) {
	c := sample()
	c.Plans[1].Size, c.Bound = math.MaxInt64, math.MaxInt64
	if n := len(ticks(c.top(1))); n < 2 || n > 20 {
		t.Errorf("%d ticks", n)
	}
	elements(t, "<x>"+c.Panel(1)+"</x>")
}

// A large plan that is not in use does not make that in use small.
func TestScale(t *testing.T) {
	c := sample()
	first := c.top(0)
	c.Plans[1].Size = 1 << 30
	if c.top(0) != first || c.top(1) < 1<<30 {
		t.Errorf("upper edges %d, %d, before %d", c.top(0), c.top(1), first)
	}
	c.Plans[1].Size = 1
	if c.top(1) != first {
		t.Errorf("the upper edge of a smaller plan is %d, want %d", c.top(1), first)
	}
}

func TestDrawsTheLargest(t *testing.T) {
	boxes := make([]Box, maxBoxes+5)
	boxes[maxBoxes+1].Bytes, boxes[3].Bytes = 9, 7
	if got := largest(boxes); len(got) != maxBoxes || got[0].Bytes != 9 || got[1].Bytes != 7 {
		t.Errorf("%d boxes, the first of %d and %d bytes", len(got), got[0].Bytes, got[1].Bytes)
	}
}

func TestWriteHTMLNeedsNothingElse(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"src=", "href=", "@import", "url("} {
		if strings.Contains(b.String(), word) {
			t.Errorf("the page refers to something: %q", word)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		label string
		width float64
		want  string
	}{{"short", 100, "short"}, {"a long label", 50, "a long …"}, {"a long label", 30, ""}, {"label", 20, ""}} {
		if got := fit(tt.label, tt.width); got != tt.want {
			t.Errorf("%q in %g px: got %q, want %q", tt.label, tt.width, got, tt.want)
		}
	}
}
