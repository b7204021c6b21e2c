package main

import (
	"context"
	"fmt"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
)

// evalTextReport is the JSON object of eval --decode.
type evalTextReport struct {
	Schema      string        `json:"schema"`
	Model       string        `json:"model"`
	Threads     int           `json:"threads"`
	Samples     int           `json:"samples"`
	Exact       int           `json:"exact"`      // samples whose text was read without an error
	Characters  int           `json:"characters"` // of the samples' texts
	Edits       int           `json:"edits"`      // characters to insert, remove or change in what was read
	Rate        float64       `json:"rate"`       // character error rate: edits over characters
	TotalMS     float64       `json:"total_ms"`
	Latency     stats.Summary `json:"latency_ms"` // of runs, without reading the files
	Wrong       []wrongText   `json:"wrong"`
	Interrupted bool          `json:"interrupted,omitempty"` // by a signal or the time limit; the rest was not run
}

type wrongText struct {
	File  string `json:"file"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Edits int    `json:"edits"`
}

// texts reads all samples' texts, each from the initial state, and compares them with the labels.
func (e *evalCommand) texts(ctx context.Context, s *session.Session, samples []evaluate.Sample) (evaluated, error) {
	r := &evalTextReport{Schema: "etrun.eval.text/1", Model: s.Path, Threads: s.Threads(), Wrong: []wrongText{}}
	begun, t := time.Now(), evaluate.Texts{}
	var err error
	for i := 0; i < len(samples) && err == nil; i++ {
		e.Progress.Say("file %d of %d", i+1, len(samples))
		var got string
		if got, err = e.read(ctx, s, samples[i].Path, i); err != nil {
			err = fmt.Errorf("%s: %w", samples[i].Path, err)
		} else if edits := t.Add(samples[i].Label, got); edits > 0 {
			r.Wrong = append(r.Wrong, wrongText{samples[i].Path, samples[i].Label, got, edits})
		}
	}
	if err != nil && (!cli.Cancelled(err) || t.Samples == 0) {
		return nil, err
	}
	r.Samples, r.Exact, r.Characters, r.Edits, r.Rate = t.Samples, t.Exact, t.Characters, t.Edits, t.Rate()
	r.TotalMS, r.Latency, r.Interrupted = stats.MS(time.Since(begun)), stats.Of(s.Steps[0].Took), err != nil
	return r, err
}

// read returns the text of a file.
func (e *evalCommand) read(ctx context.Context, s *session.Session, path string, sample int) (text string, err error) {
	return text, e.decoded(ctx, s, path, sample, func(found any, _ *output.Scene) error {
		texts, ok := output.Texts(found)
		if !ok || len(texts) != 1 {
			return session.Usage("--decode does not read one text of a file: want ctc, and a program for one file")
		}
		text = texts[0]
		return nil
	})
}

// decoded calls f with what the decoder reads in the outputs for a file.
func (e *evalCommand) decoded(ctx context.Context, s *session.Session, path string, sample int, f func(found any, of *output.Scene) error) error {
	spec, err := input.ParseFile(path, e.recipe)
	if err != nil {
		return err
	}
	if err := s.Feed(ctx, []input.Spec{spec}, e.say(sample)); err != nil {
		return err
	}
	return s.Once(ctx, func(_ int, st *session.Step) error {
		outputs, err := st.Outputs()
		if err != nil {
			return err
		}
		scene := e.classes.scene(st)
		found, err := e.classes.decoders[0].Decode(outputs, scene)
		if err != nil {
			return err
		}
		return f(found, scene)
	})
}

func (r *evalTextReport) table() (titles, row string) {
	return "model\ta run\ttexts\twithout an error\tcharacter error rate",
		tableRow(r.Model, r.Latency, r.Samples, share(r.Exact, r.Samples), share(r.Edits, r.Characters))
}

func (r *evalTextReport) print(e *evalCommand) error {
	fmt.Fprintf(e.Out, "%s: %s without an error, character error rate %s; a run %s (median), all %s on %s\n",
		cli.Count(r.Samples, "text", "texts"), share(r.Exact, r.Samples), share(r.Edits, r.Characters), duration.FormatMS(r.Latency.P50),
		duration.FormatMS(r.TotalMS), cli.Count(r.Threads, "thread", "threads"))
	for i, w := range r.Wrong {
		if i == maxConfusions {
			fmt.Fprintf(e.Out, "  … %d more, see --json\n", len(r.Wrong)-i)
			break
		}
		fmt.Fprintf(e.Out, "  %s: %s read as %s\n", cli.Printable(w.File), cli.Printable(w.Want), cli.Printable(w.Got))
	}
	return nil
}
