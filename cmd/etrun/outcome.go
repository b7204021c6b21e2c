package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// outcome is what becomes of the outputs of calls: files, entries for --json, or words.
type outcome struct {
	*app
	dir, npz string // from the command line, empty for none
	folder   *output.Folder
	archive  *output.Archive
	entries  [][]output.Entry // by call
}

func (o *outcome) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "output-dir", "", "write out0.bin, out1.bin, … and outputs.json into `DIR`, further calls' into DIR/call1, …")
	flags.StringVar(&o.npz, "output-npz", "", "write the outputs as NumPy arrays in logical order into `FILE`.npz")
}

// create makes the hidden places for the files that are wanted, before anything runs: a
// place that cannot be written shows at once.
func (o *outcome) create(ctx context.Context) (err error) {
	if o.dir != "" {
		if o.folder, err = output.Open(ctx, o.dir); err != nil {
			return err
		}
	}
	if o.npz != "" {
		o.archive, err = output.CreateArchive(ctx, o.npz)
	}
	return err
}

func (o *outcome) commit() error {
	if o.archive != nil {
		if err := o.archive.Commit(); err != nil {
			return err
		}
	}
	if o.folder != nil {
		return o.folder.Commit()
	}
	return nil
}

// close removes what was not committed.
func (o *outcome) close() {
	if o.folder != nil {
		o.folder.Close()
	}
	if o.archive != nil {
		o.archive.Close()
	}
}

// keep takes the outputs of call k of a session while they are valid.
func (o *outcome) keep(s *session.Session, k int, st *session.Step) error {
	outputs, err := st.Outputs()
	if err != nil {
		return err
	}
	if o.archive != nil {
		if err := o.archive.Add(k, outputs); err != nil {
			return err
		}
	}
	var entries []output.Entry
	switch {
	case o.folder != nil:
		entries, err = o.folder.Add(k, outputs)
	case o.json:
		entries, err = describe(outputs)
	default:
		fmt.Fprintf(o.out, "%s%s  %v\n", s.CallName(k), printable(st.Name()), round(st.Took[0]))
		for i, v := range outputs {
			output.Print(o.out, i, v)
		}
	}
	o.entries = append(o.entries, entries)
	return err
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

// round leaves a duration four digits or so.
func round(d time.Duration) time.Duration {
	for unit := time.Hour; unit > 1; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 1000)
		}
	}
	return d
}
