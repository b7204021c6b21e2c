package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
)

// evalReport is the JSON object of eval.
type evalReport struct {
	Schema     string          `json:"schema"`
	Model      string          `json:"model"`
	Threads    int             `json:"threads"`
	Samples    int             `json:"samples"`
	Top1       int             `json:"top1"`    // samples whose class has the highest score
	Top5       int             `json:"top5"`    // samples whose class has one of the five highest scores
	Invalid    int             `json:"invalid"` // samples with a score that is NaN; they count as wrong
	TotalMS    float64         `json:"total_ms"`
	Latency    stats.Summary   `json:"latency_ms"` // of runs, without reading the files
	Classes    []evalClass     `json:"classes"`    // those with samples, or with the highest score of any
	Confusions []evalConfusion `json:"confusions"` // wrong results by class, the most frequent first
	// Matrix has a row for each class and a column for each class with the highest score; absent for more than 100 classes.
	Matrix      [][]int `json:"matrix,omitempty"`
	Interrupted bool    `json:"interrupted,omitempty"` // by a signal or the time limit; the rest was not run
}

type evalClass struct {
	Class     int    `json:"class"`
	Name      string `json:"name"`
	Samples   int    `json:"samples"`
	Top1      int    `json:"top1"`
	Top5      int    `json:"top5"`
	Predicted int    `json:"predicted"` // samples of all classes with the highest score for this one
}

type evalConfusion struct {
	Class     int    `json:"class"`
	Name      string `json:"name"`
	Predicted int    `json:"predicted"`
	As        string `json:"as"` // name of the predicted class, its number if it has none
	Samples   int    `json:"samples"`
}

// maxMatrix is the maximum number of classes of a matrix in the report.
const maxMatrix = 100

func newEvalReport(s *session.Session, t *evaluate.Tally, names []string, total time.Duration, interrupted bool) *evalReport {
	r := &evalReport{Schema: "etrun.eval/1", Model: s.Path, Threads: s.Threads(), Samples: t.Samples, Top1: t.Top1, Top5: t.Top5,
		Invalid: t.Invalid, TotalMS: stats.MS(total), Latency: stats.Of(s.Steps[0].Took), Classes: []evalClass{},
		Confusions: []evalConfusion{}, Interrupted: interrupted}
	for i, c := range t.Classes {
		if c.Samples > 0 || c.Predicted > 0 {
			r.Classes = append(r.Classes, evalClass{i, names[i], c.Samples, c.Top1, c.Top5, c.Predicted})
		}
	}
	for _, c := range t.Confusions() {
		as := fmt.Sprint(c.Predicted)
		if c.Predicted < len(names) {
			as = names[c.Predicted]
		}
		r.Confusions = append(r.Confusions, evalConfusion{c.Class, names[c.Class], c.Predicted, as, c.Samples})
	}
	if len(names) <= maxMatrix {
		r.Matrix = t.Matrix(len(names))
	}
	return r
}

func (e *evalCommand) report(r *evalReport) error {
	if e.JSON {
		return e.WriteJSON(r)
	}
	fmt.Fprintf(e.Out, "%s: top-1 %s, top-5 %s; a run %s (median), all %s on %s\n", cli.Count(r.Samples, "sample", "samples"),
		share(r.Top1, r.Samples), share(r.Top5, r.Samples), duration.FormatMS(r.Latency.P50), duration.FormatMS(r.TotalMS),
		cli.Count(r.Threads, "thread", "threads"))
	if r.Invalid > 0 {
		fmt.Fprintf(e.Out, "%s: NaN\n", cli.Count(r.Invalid, "sample has a score that is no number", "samples have scores that are no numbers"))
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tsamples\ttop-1\ttop-5\tpredicted")
	for _, c := range r.Classes {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\n", cli.Printable(c.Name), c.Samples, share(c.Top1, c.Samples), share(c.Top5, c.Samples), c.Predicted)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return e.printConfusions(r)
}

// maxConfusions is the number of confusions that are printed.
const maxConfusions = 10

func (e *evalCommand) printConfusions(r *evalReport) error {
	if len(r.Confusions) > 0 {
		fmt.Fprintln(e.Out, "confusions")
	}
	for i, c := range r.Confusions {
		if i == maxConfusions {
			fmt.Fprintf(e.Out, "  … %d more, see --json\n", len(r.Confusions)-i)
			break
		}
		fmt.Fprintf(e.Out, "  %s as %s: %d\n", cli.Printable(c.Name), cli.Printable(c.As), c.Samples)
	}
	return nil
}

// share formats a part of a number in percent.
func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
