//go:build unix

package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/browsertest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main{M: m}.Run()) }

// sampleReport is a measurement of texts at three rates, of which the last one is too high.
func sampleReport(t *testing.T) *Report {
	t.Helper()
	r := &Report{Version: "etrun test", URL: "http://<host>", Model: "a \"model\" <of> mine", Kind: KindTexts, Loop: "constant",
		InFlight: 4, Level: 0.99, Requests: 1}
	for _, rate := range []float64{10, 30, 80} {
		p := Plan{Rate: rate, InFlight: 4, Duration: 40 * time.Second}
		l := level(t, p, &fake{takes: func(n int64) time.Duration { return 50*ms + time.Duration(n%50)*ms }})
		l.FirstToken, l.Between = &l.Latency, &l.Latency
		r.Levels = append(r.Levels, l)
	}
	return r
}

// The page needs no other file, and has no text of the server unescaped.
func TestPage(t *testing.T) {
	r := sampleReport(t)
	r.Levels[0].Errors, r.Levels[0].Failed = []Errors{{"status 500", 1, "<script>alert(1)</script>"}}, 1
	r.Interrupted = true
	var b strings.Builder
	must(t, r.WritePage(&b))
	for _, never := range []string{"src=", "href=", "@import", "url(", "<script", "<of>", "<host>", "NaN", "Inf"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, want := range []string{"load of a &#34;model&#34; &lt;of&gt; mine", "open loop", "&lt;script&gt;", "interrupted",
		"<td>80/s</td>", "not sent"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// A report without levels, and levels without answers, are pages, too.
func TestEmptyPage(t *testing.T) {
	for _, r := range []*Report{{Kind: KindInfer}, {Kind: KindTexts, Levels: []*Level{{Clients: 1}, {Rate: 2}}}} {
		var b strings.Builder
		if err := r.WritePage(&b); err != nil || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}

// Axes end at a round number that is not much larger than the data.
// Rows have no times without answers, and numbers without exponents.
func TestCells(t *testing.T) {
	for _, tt := range []struct {
		level Level
		want  string
	}{
		{Level{Failed: 3}, "0 0 3 – – – –"},
		{Level{Answered: 2, Throughput: stats.Estimate{Value: 10130, Low: 9334.4, High: 1.2e6}, Latency: Times{N: 2, Max: 2}},
			"10130 (9334 to 1200000) 2 0 0s 0s 0s 2.000ms"},
		{Level{Throughput: stats.Estimate{Value: 99.6512}}, "99.65 0 0 – – – –"},
	} {
		if got := strings.Join(tt.level.cells(), " "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestAxes(t *testing.T) {
	for _, tt := range []struct{ x, end float64 }{
		{0, 1}, {1, 1}, {1.01, 1.2}, {0.003, 0.003}, {99, 100}, {101, 120}, {4.9e9, 5e9}, {7e-5, 8e-5},
	} {
		if got := above(tt.x); !near(got, tt.end) {
			t.Errorf("%g: %g, want %g", tt.x, got, tt.end)
		}
		if n := len(numbers(above(tt.x))); n < 2 || n > 8 {
			t.Errorf("%g: %d marks", tt.x, n)
		}
	}
}

// In a browser all drawings are there, nothing is beyond the window, and what is drawn lies within its drawing.
func TestPageInBrowser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "load.html")
	f, err := os.Create(path)
	must(t, err)
	must(t, sampleReport(t).WritePage(f))
	must(t, f.Close())
	for _, width := range []int{1200, 420} {
		b := browsertest.Open(t, path, width)
		inside := "[...document.querySelectorAll('.plot')].every((p) => { const box = p.getBoundingClientRect();" +
			" return [...p.querySelectorAll('circle, line, text, polyline')].every((e) => { const r = e.getBoundingClientRect();" +
			" return r.left >= box.left - 4 && r.right <= box.right + 4 && r.top >= box.top - 4 && r.bottom <= box.bottom + 4 }) })"
		b.Play([]browsertest.Step{
			{"six drawings", "", "document.querySelectorAll('.plot').length", "6"},
			{"three levels", "", "document.querySelectorAll('table tr').length >= 4", "true"},
			{"each drawing has lines", "", "[...document.querySelectorAll('.plot')].every((p) =>" +
				" p.querySelectorAll('polyline').length == 3)", "true"},
			{"all is inside of its drawing", "", inside, "true"},
			{"nothing is beyond the window", "", "document.documentElement.scrollWidth <= window.innerWidth", "true"},
			{"points have texts", "", "document.querySelector('.plot circle title').textContent.includes('answers/s')", "true"},
			{"lines are not filled", "", "getComputedStyle(document.querySelector('.plot polyline')).fill", "none"},
		})
		b.Shot("load" + map[bool]string{true: "", false: "-narrow"}[width > 1000])
	}
}
