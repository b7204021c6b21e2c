package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// openOutputs makes the hidden places for the files that are wanted, before anything
// runs: a place that cannot be written shows at once.
func (s *session) openOutputs(ctx context.Context) (err error) {
	if s.outputDir != "" {
		if s.folder, err = output.Open(ctx, s.outputDir); err != nil {
			return err
		}
	}
	if s.outputNPZ != "" {
		if s.archive, err = output.CreateArchive(ctx, s.outputNPZ); err != nil {
			return err
		}
	}
	return s.profileFlags.create(ctx)
}

func (s *session) commitOutputs() error {
	if s.archive != nil {
		if err := s.archive.Commit(); err != nil {
			return err
		}
	}
	if s.folder != nil {
		return s.folder.Commit()
	}
	return nil
}

// closeOutputs removes what was not committed.
func (s *session) closeOutputs() {
	if s.folder != nil {
		s.folder.Close()
	}
	if s.archive != nil {
		s.archive.Close()
	}
	s.profileFlags.close()
}

// keep takes the outputs of call k while they are valid: to files, to entries for
// --json, or in words at once.
func (s *session) keep(k int, st *step) (err error) {
	outputs := make([]*tensor.Value, st.method.NumOutputs())
	for i := range outputs {
		v, err := st.method.Output(i)
		if err != nil {
			return err
		}
		outputs[i] = &v
	}
	if s.archive != nil {
		if err := s.archive.Add(k, outputs); err != nil {
			return err
		}
	}
	switch {
	case s.folder != nil:
		st.entries, err = s.folder.Add(k, outputs)
	case s.json:
		st.entries, err = describe(outputs)
	default:
		fmt.Fprintf(s.out, "%s%s  %v\n", s.callName(k), printable(st.method.Name()), round(st.took[0]))
		for i, v := range outputs {
			output.Print(s.out, i, v)
		}
	}
	return err
}

// callName begins a line about call k, where there are several.
func (s *session) callName(k int) string {
	if len(s.steps) == 1 {
		return ""
	}
	return fmt.Sprintf("call %d: ", k)
}

func describe(outputs []*tensor.Value) ([]output.Entry, error) {
	entries := []output.Entry{}
	for i, v := range outputs {
		e, err := output.Describer{Summaries: true}.Describe(i, v, "")
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// runReport is the JSON object of a run.
type runReport struct {
	Schema    string       `json:"schema"`
	Model     string       `json:"model"`
	Seed      uint64       `json:"seed"`
	Threads   int          `json:"threads"`
	Repeat    int          `json:"repeat"`
	LoadMS    float64      `json:"load_ms"`
	OutputDir string       `json:"output_dir,omitempty"`
	Calls     []callReport `json:"calls"`
}

type callReport struct {
	Method  string         `json:"method"`
	Latency latency        `json:"latency_ms"`
	Outputs []output.Entry `json:"outputs"`
}

// latency is the spread of execution times, in milliseconds.
type latency struct {
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

func (s *session) report(path string) error {
	if s.json {
		report := runReport{"etrun.run/1", path, s.seed, s.prog.Threads(), s.repeat, ms(s.loaded), s.outputDir, nil}
		for i := range s.steps {
			st := &s.steps[i]
			report.Calls = append(report.Calls, callReport{st.method.Name(), spread(st.took), st.entries})
		}
		return s.writeJSON(report)
	}
	if s.repeat > 1 {
		fmt.Fprintf(s.out, "load %v, %d runs on %d threads\n", round(s.loaded), s.repeat, s.prog.Threads())
		for k := range s.steps {
			l := spread(s.steps[k].took)
			fmt.Fprintf(s.out, "%s%s  min %.4g ms  p50 %.4g ms  p90 %.4g ms  max %.4g ms\n",
				s.callName(k), printable(s.steps[k].method.Name()), l.Min, l.P50, l.P90, l.Max)
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// round leaves a duration four digits or so.
func round(d time.Duration) time.Duration {
	for unit := time.Hour; unit > 1; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 1000)
		}
	}
	return d
}

// spread sorts durations into percentiles (nearest rank).
func spread(took []time.Duration) latency {
	sorted := slices.Clone(took)
	slices.Sort(sorted)
	rank := func(percent int) float64 { return ms(sorted[(len(sorted)*percent+99)/100-1]) }
	return latency{ms(sorted[0]), rank(50), rank(90), ms(sorted[len(sorted)-1])}
}
