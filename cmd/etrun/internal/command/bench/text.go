package bench

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
)

func (r *report) print(w io.Writer) {
	e := &r.Environment
	fmt.Fprintf(w, "%s; %s, %s; load average %.2f\n", e.Version, cmp.Or(e.CPU, "–"), cli.Count(e.Processors, "processor", "processors"), e.LoadBefore)
	for _, a := range r.Arms {
		a.print(w)
	}
	r.printStages(w)
	for i := range r.Comparisons {
		r.Comparisons[i].print(w)
	}
	fmt.Fprintf(w, "process: at most %s resident, %s live on the Go heap\n",
		bytesize.Format(r.Process.PeakResident), bytesize.Format(r.Process.GoHeap))
}

func (a *arm) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s, %s, %s", a.Name, a.Model, cli.Printable(strings.Join(a.Methods, " + ")), cli.Count(a.Threads, "thread", "threads"))
	if a.Flags != "" {
		fmt.Fprintf(w, ", %s", a.Flags)
	}
	for _, engine := range a.Engines {
		fmt.Fprintf(w, ", %s engine", cli.Printable(engine))
	}
	fmt.Fprintf(w, "\n   load       %s\n   first run  %s, then %s\n", duration.FormatMS(a.LoadMS), duration.FormatMS(a.FirstMS), cli.Count(a.Warmup, "warm-up run", "warm-up runs"))
	l := &a.Latency
	ms := duration.FormatMS
	fmt.Fprintf(w, "   %-9s  min %-7s  p50 %-7s  p90 %-7s  p95 %-7s  p99 %-7s  max %-7s  MAD %s; %s\n", cli.Count(l.N, "run", "runs"),
		ms(l.Min), ms(l.P50), ms(l.P90), ms(l.P95), ms(l.P99), ms(l.Max), ms(l.MAD), cli.Count(l.Outliers, "outlier", "outliers"))
	m := &a.Memory
	fmt.Fprintf(w, "   memory     planned %s, packed %s, scratch %s, load added %s to the process; %s per run\n", bytesize.Format(m.Planned),
		bytesize.Format(m.Packed), bytesize.Format(m.Scratch), bytesize.Format(m.Resident),
		cli.Count(int(a.Allocs), "Go allocation", "Go allocations"))
}

// printStages writes the stages of the loads as a table with a column for each arm.
func (r *report) printStages(w io.Writer) {
	var names []string
	for _, a := range r.Arms {
		for _, s := range a.Stages {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "load")
	for _, a := range r.Arms {
		fmt.Fprintf(t, "\t%s", a.Name)
	}
	for _, name := range names {
		fmt.Fprintf(t, "\n   %s", name)
		for _, a := range r.Arms {
			text := "–"
			if at := slices.IndexFunc(a.Stages, func(s stageReport) bool { return s.Name == name }); at >= 0 {
				text = duration.FormatMS(a.Stages[at].MS)
			}
			fmt.Fprintf(t, "\t%s", text)
		}
	}
	fmt.Fprintln(t)
	_ = t.Flush() // as the other lines
}

func (c *comparison) print(w io.Writer) {
	threads := ""
	if c.Threads[0] != c.Threads[1] {
		threads = fmt.Sprintf(" (threads %d/%d)", c.Threads[0], c.Threads[1])
	}
	fmt.Fprintf(w, "%s/%s%s  ", c.Arm, c.Baseline, threads)
	if c.Blocks < stats.MinBlocks {
		fmt.Fprintf(w, "%.4g, %s, too few for an interval\n", c.Value, cli.Count(c.Blocks, "block", "blocks"))
		return
	}
	fmt.Fprintf(w, "%.4g, %.0f %% interval %.4g to %.4g, %s: %s\n",
		c.Value, 100*c.Level, c.Low, c.High, cli.Count(c.Blocks, "block", "blocks"), c.Verdict)
}

// writeBenchstat writes a line for each cell, which benchstat treats as one measurement,
// and one line each for load and first run of each arm. The key /arm names the arm, for
// benchstat -col /arm.
func (r *report) writeBenchstat(out io.Writer) error {
	w := benchfmt.NewWriter(out)
	config := []benchfmt.Config{}
	for _, c := range [][2]string{{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"cpu", r.Environment.CPU},
		{"etrun", r.Environment.Version}} {
		if c[1] != "" {
			config = append(config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
		}
	}
	line := func(kind string, a *arm, n int, milliseconds float64) error {
		name := fmt.Sprintf("%s/model=%s/arm=%s/threads=%d", kind, oneWord(filepath.Base(a.Model)), a.Name, a.Threads)
		value := benchfmt.Value{Value: milliseconds / 1e3, Unit: "sec/op", OrigValue: milliseconds * 1e6, OrigUnit: "ns/op"}
		return w.Write(&benchfmt.Result{Config: config, Name: benchfmt.Name(name), Iters: n, Values: []benchfmt.Value{value}})
	}
	for _, a := range r.Arms {
		if err := line("Load", a, 1, a.LoadMS); err != nil {
			return err
		}
		if err := line("FirstRun", a, 1, a.FirstMS); err != nil {
			return err
		}
		for _, cell := range a.Cells {
			if err := line("Run", a, a.PerCell, cell); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneWord replaces characters that a benchmark name must not contain.
func oneWord(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' || r == '=' || r == 0x7f {
			return '_'
		}
		return r
	}, text)
}
