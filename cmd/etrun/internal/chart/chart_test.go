package chart

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func sample() *Chart {
	return &Chart{
		Title: `a "model" <of> mine`, Steps: 10, Bound: 3 << 10,
		Legend: []Class{{"input", "#9ec9f0"}, {"activation", "#cfd8c0"}},
		Plans: []Plan{
			{Name: "file", Size: 4 << 10, Boxes: []Box{
				{First: -1, Last: 2, Bytes: 1 << 10, Label: "x", Detail: "values [0]\nfloat32", Class: "input"},
				{First: 1, Last: 9, Offset: 1 << 10, Bytes: 3 << 10, Label: "a rather long label", Detail: "<b>", Class: "activation", Conflict: true},
			}},
			{Name: "own", Size: 3 << 10},
		},
	}
}

// TestWellFormed reads the drawings as XML: names from files must not break out.
func TestWellFormed(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{"svg": sample().WriteSVG} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(b.String()))
		rects := 0
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, b.String())
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
				rects++
			}
		}
		// a background, two frames, two boxes, two of the legend
		if rects != 7 {
			t.Errorf("%s: %d rectangles, want 7", name, rects)
		}
		for _, want := range []string{"a &#34;model&#34; &lt;of&gt; mine", "conflict", "lower bound, 3 KiB", "&lt;b&gt;"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
	}
}

func TestWriteHTMLNeedsNothingElse(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"<script", "src=", "href=", "@import"} {
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
	}{{"short", 100, "short"}, {"a long label", 40, "a lon…"}, {"label", 20, ""}} {
		if got := fit(tt.label, tt.width); got != tt.want {
			t.Errorf("%q in %g px: got %q, want %q", tt.label, tt.width, got, tt.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 200 << 20: "200 MiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
