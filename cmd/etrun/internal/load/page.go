package load

import (
	_ "embed" // style sheet
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
)

//go:embed page.css
var pageCSS string

const pageHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>load of %[1]s</title>
<style>%[2]s</style>
</head>
<body>
<main>
<h1>load of %[1]s</h1>
`

// WritePage writes the report as a page that needs no other file.
func (r *Report) WritePage(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, html.EscapeString(r.Model), chart.Style+pageCSS)
	for _, text := range r.Facts() {
		fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(text))
	}
	if r.Interrupted {
		b.WriteString("<p class=\"fault\">The measurement was interrupted: the last level is not complete.</p>\n")
	}
	b.WriteString("<h2>levels</h2>\n")
	r.table(&b)
	r.errors(&b)
	b.WriteString("<h2>drawings</h2>\n<div class=\"plots\">\n")
	for _, p := range r.plots() {
		fmt.Fprintf(&b, "<figure><figcaption>%s</figcaption>\n%s%s</figure>\n", html.EscapeString(p.title), p.svg(), p.key())
	}
	fmt.Fprintf(&b, "</div>\n</main>\n<footer>made by %s</footer>\n</body>\n</html>\n", html.EscapeString(r.Version))
	_, err := io.WriteString(w, b.String())
	return err
}

// Facts describe the requests and the loop, a sentence each.
func (r *Report) Facts() []string {
	what := fmt.Sprintf("%s, model %s", r.URL, r.Model)
	if r.Method != "" {
		what += ", version " + r.Method
	}
	if r.Kind == KindInfer {
		what += fmt.Sprintf(": inferences with %s tensors", r.Tensors)
	} else {
		what += ": texts as streams"
	}
	what += fmt.Sprintf("; requests in the data: %d, the largest of %d bytes", r.Requests, r.Bytes)
	loop := "closed loop: each client sends its next request when its last one was answered"
	if r.InFlight > 0 {
		loop = fmt.Sprintf("open loop, %s intervals, at most %d requests in progress: times are from when a request was due", r.Loop, r.InFlight)
	}
	return []string{what, fmt.Sprintf("%s; warm-up of %s before each level", loop, Span(r.Warmup))}
}

// Name is the level as an axis or a table has it.
func (l *Level) Name() string {
	if l.Rate > 0 {
		return fmt.Sprintf("%g/s", l.Rate)
	}
	return fmt.Sprint(l.Clients)
}

// Heading is the name of the levels.
func (r *Report) Heading() string {
	if r.InFlight > 0 {
		return "rate"
	}
	return "clients"
}

// Figure formats an estimate with its interval in brackets, by a format of its numbers.
func Figure(e stats.Estimate, format func(float64) string) string {
	if e.High == 0 {
		return format(e.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", format(e.Value), format(e.Low), format(e.High))
}

// PerSecond formats a number of events per second.
func PerSecond(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// Span formats a number of seconds.
func Span(seconds float64) string { return duration.FormatMS(1000 * seconds) }

// cells are the texts of a row. Without answers there are no times, which 0 would be.
func (l *Level) cells() []string {
	list := []string{Figure(l.Throughput, PerSecond), fmt.Sprint(l.Answered), fmt.Sprint(l.Failed), "–", "–", "–", "–"}
	if t := &l.Latency; t.N > 0 {
		list = append(list[:3], Figure(t.P50, duration.FormatMS), Figure(t.P90, duration.FormatMS), Figure(t.P99, duration.FormatMS),
			duration.FormatMS(t.Max))
	}
	return list
}

func (r *Report) table(b *strings.Builder) {
	fmt.Fprintf(b, "<div class=\"table\"><table>\n<tr><th>%s</th><th>answers/s</th><th>answered</th><th>failed</th>"+
		"<th>p50</th><th>p90</th><th>p99</th><th>max</th></tr>\n", r.Heading())
	for _, l := range r.Levels {
		fmt.Fprintf(b, "<tr><td>%s</td>", l.Name())
		for _, text := range l.cells() {
			fmt.Fprintf(b, "<td>%s</td>", text)
		}
		b.WriteString("</tr>\n")
	}
	fmt.Fprintf(b, "</table></div>\n<p class=\"note\">In brackets: intervals of %g %%, from parts of the time of a level.</p>\n", 100*r.Level)
}

func (r *Report) errors(b *strings.Builder) {
	if failed, _ := r.Failed(); failed == 0 {
		return
	}
	fmt.Fprintf(b, "<h2>failed requests</h2>\n<div class=\"table\"><table class=\"errors\">\n<tr><th>%s</th><th>class</th><th>count</th>"+
		"<th>first message</th></tr>\n", r.Heading())
	for _, l := range r.Levels {
		for _, e := range l.Errors {
			fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%d</td><td>%s</td></tr>\n", l.Name(), html.EscapeString(string(e.Class)), e.Count,
				html.EscapeString(e.Example))
		}
	}
	b.WriteString("</table></div>\n")
}

// plots returns the drawings that there are data for.
func (r *Report) plots() (list []plot) {
	list = append(list, r.sweep("latency by throughput", func(l *Level) *Times { return &l.Latency }))
	if r.Kind == KindTexts {
		list = append(list, r.sweep("time to the first token by throughput", func(l *Level) *Times { return l.FirstToken }),
			r.sweep("time between tokens by throughput", func(l *Level) *Times { return l.Between }))
	}
	latency := func(s *Slot) (float64, bool) { return s.P99, s.N > 0 }
	answers := func(s *Slot) (float64, bool) { return s.PerSecond, true }
	return append(list, r.curves(), r.overTime("latency over time: p99 of each part", "ms", latency),
		r.overTime("answers per second over time", "answers/s", answers))
}

// sweep draws percentiles of a figure against the throughput.
func (r *Report) sweep(title string, of func(*Level) *Times) plot {
	p := plot{title: title, x: "answers per second", y: "ms", lines: []line{{name: "p50"}, {name: "p90"}, {name: "p99"}}}
	for _, l := range r.Levels {
		t := of(l)
		if t == nil || t.N == 0 {
			continue
		}
		for i, e := range []stats.Estimate{t.P50, t.P90, t.P99} {
			text := fmt.Sprintf("%s %s: %s answers/s, %s %s", r.Heading(), l.Name(), PerSecond(l.Throughput.Value), p.lines[i].name,
				duration.FormatMS(e.Value))
			p.lines[i].points = append(p.lines[i].points, point{l.Throughput.Value, e.Value, e.Low, e.High, text})
		}
	}
	return p
}

// curves draws the latency by percentile, on an axis of the logarithm of what is beyond.
func (r *Report) curves() plot {
	beyond := func(percent float64) float64 { return -math.Log10(1 - percent/100) }
	p := plot{title: "latency by percentile", x: "percentile", y: "ms"}
	last := 0.0
	for _, l := range r.Levels {
		one := line{name: r.Heading() + " " + l.Name()}
		for _, m := range l.Curve {
			text := fmt.Sprintf("p%g: %s", m.Percent, duration.FormatMS(m.Latency))
			one.points = append(one.points, point{x: beyond(m.Percent), y: m.Latency, text: text})
			last = max(last, beyond(m.Percent))
		}
		p.lines = append(p.lines, one)
	}
	for _, at := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		p.ticks = append(p.ticks, tick{beyond(at), fmt.Sprintf("%g", at)})
		if beyond(at) >= last && at > 0 {
			break
		}
	}
	return p
}

// overTime draws a figure of the parts of each level's time.
func (r *Report) overTime(title, unit string, of func(*Slot) (float64, bool)) plot {
	p := plot{title: title, x: "seconds since the warm-up", y: unit}
	for _, l := range r.Levels {
		one := line{name: r.Heading() + " " + l.Name()}
		for i := range l.Timeline {
			s := &l.Timeline[i]
			if y, ok := of(s); ok {
				text := fmt.Sprintf("%s: %.4g %s, %d answered, %d failed", Span(s.Begin), y, unit, s.N, s.Failed)
				one.points = append(one.points, point{x: s.Begin, y: y, text: text})
			}
		}
		p.lines = append(p.lines, one)
	}
	return p
}
