//go:build unix

package page

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/browsertest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/trace"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main{M: m}.Run()) }

// open opens a program of the module's tests, on engines available on every machine.
// open opens a program, as written if no option says otherwise: what is lowered depends on the processor's rates.
func open(t *testing.T, name string, more ...etrun.Option) *etrun.Program {
	t.Helper()
	more = append([]etrun.Option{etrun.WithLowering(etrun.LowerOff)}, more...)
	more = append(more, etrun.WithDelegates(append(all.Backends(), xnnpack.Backend{Engine: xnnpack.EngineGo, KeepConstants: true})...))
	p, err := etrun.OpenSource(t.Context(), etrun.File(filepath.Join("../../../../testdata", name)), more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func describe(t *testing.T, name string, options ...etrun.Option) *Page {
	t.Helper()
	prog := open(t, name, options...)
	p, err := New(t.Context(), prog, name, "etrun test")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(t.Context(), prog, name, len(options) > 0)
	if err != nil {
		t.Fatal(err)
	}
	element, err := graph.Element([]*graph.Program{g}, false)
	if err != nil {
		t.Fatal(err)
	}
	p.Graph = Markup(element)
	return p
}

func text(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		name         string
		instructions int
		nodes        int
		plans        int
		want         []string
		options      []etrun.Option
	}{
		// lowered whatever the estimates say on this processor; how many nodes are merged depends on it
		{"digits/portable.pte", 1, 0, 2, []string{"Conv2d", "float32 1x1x8x8", "in use"}, []etrun.Option{etrun.WithLowering(etrun.LowerAll)}},
		{"digits/xnnpack.pte", 1, 8, 2, []string{"Conv2d", "payload of delegate 0", "go"}, nil},
		{"ethosu/programs/digits.pte", 3, 5, 2, []string{"CONV", "compiled for", "delegate 0 scratch"}, nil},
		{"pte/external_weights.pte", 2, 0, 0, []string{"does not run here", "l.weight"}, nil},
		{"pte/two_methods.pte", 0, 0, 0, []string{"method push", "method read", `class="box state"`}, nil},
		{"pte/map_loop.pte", 0, 0, 0, []string{"JumpFalseCall", "jump"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := describe(t, c.name, c.options...)
			m := p.Methods[0]
			if c.instructions > 0 && m.Instructions != c.instructions || c.nodes > 0 && m.Nodes != c.nodes || c.plans > 0 && len(m.Plans) != c.plans {
				t.Errorf("%d instructions, %d nodes, %d plans, want %d, %d, %d", m.Instructions, m.Nodes, len(m.Plans), c.instructions, c.nodes, c.plans)
			}
			got := text(t, p)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q", want)
				}
			}
		})
	}
}

// TestPageOfOperators describes a program that is not lowered.
func TestPageOfOperators(t *testing.T) {
	p := describe(t, "digits/portable.pte", etrun.WithLowering(etrun.LowerRewrite))
	if n := p.Methods[0].Instructions; n != 10 {
		t.Errorf("%d instructions, want 10", n)
	}
	got := text(t, p)
	for _, want := range []string{"convolution", "computed at load"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
}

// The marked peak is the lower bound of the plan, and the scratch of delegates outside it.
func TestPeakIsTheLowerBound(t *testing.T) {
	for _, name := range []string{"digits/portable.pte", "digits/xnnpack.pte", "pte/two_methods.pte", "ethosu/programs/digits.pte",
		"pte/map_loop.pte", "pte/stack_traces.pte"} {
		prog := open(t, name)
		for _, method := range prog.MethodNames() {
			m, err := prog.Load(t.Context(), method)
			if err != nil {
				t.Fatal(err)
			}
			p, err := New(t.Context(), prog, name, "")
			if err != nil {
				t.Fatal(err)
			}
			shown := p.Methods[slices.Index(prog.MethodNames(), method)]
			sum := int64(0)
			for _, l := range shown.AtPeak {
				sum += l.Bytes
			}
			own, shared := int64(0), int64(0)
			for _, d := range m.Delegates() {
				own, shared = own+d.Scratch-d.Shared, max(shared, d.Shared)
			}
			if bound := m.Report().Plan.LowerBound; sum != shown.PeakBytes || sum < bound+own || sum > bound+own+shared {
				t.Errorf("%s, %s: %d bytes at the peak, %d listed, lower bound %d, scratch %d and %d", name, method, shown.PeakBytes, sum, bound, own,
					shared)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// hostile is text that contains elements, scripts and attributes.
const hostile = `</script></style><img src=x onerror=alert(1)>"'><!--{{.}}`

// spoil sets every text of a page, except drawings, to hostile.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.String:
		if v.Type() != reflect.TypeFor[Markup]() {
			v.SetString(hostile)
		}
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	p := describe(t, "ethosu/programs/digits.pte")
	p.Notes = []string{""}
	p.Methods[0].Fault = "x"
	p.Timed(timed(t, "ethosu/programs/digits.pte"))
	spoil(reflect.ValueOf(p))
	got := text(t, p)
	if n := strings.Count(got, "onerror"); n < 40 {
		t.Errorf("hostile text %d times", n)
	}
	for _, bad := range []string{"<img", "</script></style>", "<!--"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is there", bad)
		}
	}
}

// Names from the file also occur in drawings.
func TestHostileFile(t *testing.T) {
	file, err := os.ReadFile("../../testdata/state.pte")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file, []byte("forward")) {
		t.Fatal("no method forward")
	}
	prog, err := etrun.Parse(bytes.ReplaceAll(file, []byte("forward"), []byte("<b>\"&'x")), etrun.WithDelegates(all.Backends()...))
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	p, err := New(t.Context(), prog, "x", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, p); strings.Contains(got, "<b>") || !strings.Contains(got, "method &lt;b&gt;") {
		t.Error("the name of the method is not escaped")
	}
}

func TestNothingFromOutside(t *testing.T) {
	got := text(t, describe(t, "digits/portable.pte"))
	for _, word := range []string{"src=", "@import", "url(", "http://www", "https:"} {
		rest := strings.ReplaceAll(got, "http://www.w3.org/2000/svg", "")
		if strings.Contains(rest, word) {
			t.Errorf("the page refers to something: %q", word)
		}
	}
}

// timed runs a program and returns its profile.
func timed(t *testing.T, name string) []*profile.Profile {
	t.Helper()
	var r trace.Recorder
	m, err := open(t, name, etrun.WithObserver(&r)).Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, in.NewTensor()); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := m.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return profile.New(r.Events)
}

func TestTimes(t *testing.T) {
	for _, name := range []string{"digits/portable.pte", "digits/xnnpack.pte", "ethosu/programs/digits.pte"} {
		p := describe(t, name)
		p.Timed(timed(t, name))
		m := p.Methods[0]
		if m.Profile == nil || m.Profile.Runs != 3 {
			t.Fatalf("%s: no profile of 3 runs", name)
		}
		if got := text(t, p); !strings.Contains(got, "where the time goes") || !strings.Contains(got, `class="chart"`) {
			t.Errorf("%s: the profile is not on the page", name)
		}
	}
}

// The page in a real browser.
func TestClicks(t *testing.T) {
	p := describe(t, "ethosu/programs/digits.pte")
	p.Timed(timed(t, "ethosu/programs/digits.pte"))
	p.Notes = []string{hostile}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(text(t, p)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, path, 400)
	const rows = "[...document.querySelectorAll('tr.hit')].filter(e => e.checkVisibility())"
	const searched = "(w => { const s = document.getElementById('search'); s.value = w; s.dispatchEvent(new Event('input')) })"
	b.Play([]browsertest.Step{
		{"nothing of a hostile text runs", "", "document.images.length", "0"},
		{"fits a telephone", "", "document.documentElement.scrollWidth <= innerWidth", "true"},
		{"one graph", "", "document.querySelectorAll('.graph canvas').length", "1"},
		{"labels fit their boxes", "", "[...document.querySelectorAll('.cell .label')].every(l => { const a = l.getBoundingClientRect(), c = l.closest('.cell').querySelector('rect').getBoundingClientRect();" +
			" return a.width <= c.width + 2 && a.height <= c.height + 4 })", "true"},
		{"search finds rows", searched + "('pool')", rows + ".every(r => r.textContent.toLowerCase().includes('pool'))", "true"},
		{"search counts", "", rows + ".length > 0 && Number(document.getElementById('found').textContent.split(' ')[0]) == " + rows + ".length", "true"},
		{"search dims boxes", "", "document.querySelectorAll('.plan .cell.dim').length == document.querySelectorAll('.plan .cell').length", "true"},
		{"no search shows all", searched + "('')", rows + ".length == document.querySelectorAll('tr.hit').length", "true"},
		{"a box tells what it is", "document.querySelector('.plan .cell').dispatchEvent(new Event('click', {bubbles: true}))", "document.querySelector('.detail').textContent.includes('bytes')" +
			" || document.querySelector('.detail').textContent.includes('scratch')", "true"},
		{"dark", "document.getElementById('theme').click()", "document.documentElement.dataset.theme + ' ' + getComputedStyle(document.body).backgroundColor", "dark rgb(20, 23, 26)"},
		{"light again", "document.getElementById('theme').click()", "document.documentElement.dataset.theme + ' ' + getComputedStyle(document.body).backgroundColor", "light rgb(255, 255, 255)"},
	})
}
