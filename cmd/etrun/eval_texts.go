package main

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/duration"
)

// evalTextReport is the JSON object of eval --decode.
type evalTextReport struct {
	evalHead
	Exact      int         `json:"exact"`      // samples whose text was read without an error
	Characters int         `json:"characters"` // of the samples' texts
	Edits      int         `json:"edits"`      // characters to insert, remove or change in what was read
	Rate       float64     `json:"rate"`       // character error rate: edits over characters
	Wrong      []wrongText `json:"wrong"`
}

type wrongText struct {
	File  string `json:"file"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Edits int    `json:"edits"`
}

// texts reads all samples' texts and compares them with the labels.
func (e *evalCommand) texts(ctx context.Context, s *session.Session, samples []evaluate.Sample) (evaluated, error) {
	r, t := &evalTextReport{Wrong: []wrongText{}}, evaluate.Texts{}
	h, err := e.each(s, "etrun.eval.text/1", len(samples), func(i int) (string, error) {
		of := &samples[i]
		return of.Path, e.decoded(ctx, s, of.Path, i, func(found any, _ *output.Scene) error {
			texts, ok := output.Texts(found)
			if !ok || len(texts) != 1 {
				return session.Usage("--decode does not read one text of a file: want ctc, and a program for one file")
			}
			if edits := t.Add(of.Label, texts[0]); edits > 0 {
				r.Wrong = append(r.Wrong, wrongText{of.Path, of.Label, texts[0], edits})
			}
			return nil
		})
	})
	if h == nil {
		return nil, err
	}
	r.evalHead, r.Exact, r.Characters, r.Edits, r.Rate = *h, t.Exact, t.Characters, t.Edits, t.Rate()
	return r, err
}

// decoded calls f with what the decoder reads in the outputs for a file.
func (e *evalCommand) decoded(ctx context.Context, s *session.Session, path string, i int, f func(found any, of *output.Scene) error) error {
	return e.file(ctx, s, i, path, func(st *session.Step) error {
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
