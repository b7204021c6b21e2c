package load

import (
	"fmt"
	"io"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
)

// write writes the report, and the page if one is wanted. An interrupt does not keep it from that.
func (l *loadCommand) write(report *load.Report, page *output.File) error {
	if page != nil {
		if err := page.Fill(report.WritePage); err != nil {
			return err
		}
	}
	if l.JSON {
		return l.WriteJSON(report)
	}
	printReport(l.Out, report)
	return nil
}

// printReport writes the report as text.
func printReport(w io.Writer, r *load.Report) {
	for _, text := range r.Facts() {
		fmt.Fprintln(w, cli.Escaped(text))
	}
	for _, l := range r.Levels {
		printLevel(w, r, l)
	}
	if len(r.Levels) > 0 {
		fmt.Fprintf(w, "in brackets: %g %% intervals, from parts of the time of a level\n", 100*r.Level)
	}
}

func printLevel(w io.Writer, r *load.Report, l *load.Level) {
	fmt.Fprintf(w, "%s %s: %s answers/s; %d answered, %d failed in %s\n", r.Heading(), l.Name(), load.Figure(l.Throughput, load.PerSecond),
		l.Answered, l.Failed, load.Span(l.Seconds))
	printTimes(w, "latency", &l.Latency)
	printTimes(w, "first token", l.FirstToken)
	printTimes(w, "between", l.Between)
	if l.Tokens != nil {
		fmt.Fprintf(w, "   %-12s %s per second\n", "tokens", load.Figure(*l.Tokens, load.PerSecond))
	}
	for _, e := range l.Errors {
		fmt.Fprintf(w, "   %-12s %d: %s\n", e.Class, e.Count, cli.Printable(e.Example))
	}
}

func printTimes(w io.Writer, name string, t *load.Times) {
	if t == nil || t.N == 0 {
		return
	}
	var parts []string
	for _, p := range []struct {
		name string
		e    stats.Estimate
	}{{"p50", t.P50}, {"p90", t.P90}, {"p95", t.P95}, {"p99", t.P99}} {
		parts = append(parts, p.name+" "+load.Figure(p.e, duration.FormatMS))
	}
	fmt.Fprintf(w, "   %-12s min %s  %s  max %s\n", name, duration.FormatMS(t.Min), strings.Join(parts, "  "), duration.FormatMS(t.Max))
}
