package main

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/runtime/trace"
)

// maxEvents bounds what a long run keeps of its events.
const maxEvents = 1 << 20

// profileFlags say where the times of a run's instructions go.
type profileFlags struct {
	table          bool
	chrome, etdump string
	recorder       trace.Recorder
	files          []profileFile
}

// profileFile is a file of events that is written when the run has ended.
type profileFile struct {
	*output.File
	fill func(io.Writer) error
}

func (f *profileFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.table, "profile", false, "print the time of each operator and of each node inside delegates to stderr")
	flags.StringVar(&f.chrome, "trace", "", "write a Chrome trace, for Perfetto, to `FILE`.json")
	flags.StringVar(&f.etdump, "etdump", "", "write an ETDump, for ExecuTorch's Inspector, to `FILE`.etdp")
}

// profiles reports whether anybody asked.
func (f *profileFlags) profiles() bool { return f.table || f.chrome != "" || f.etdump != "" }

// options have the program observed, if anybody asked.
func (f *profileFlags) options() []etrun.Option {
	if !f.profiles() {
		return nil
	}
	f.recorder.Max = maxEvents
	return []etrun.Option{etrun.WithObserver(&f.recorder)}
}

// create begins the files, before anything runs.
func (f *profileFlags) create(ctx context.Context) error {
	for _, to := range []struct {
		path string
		fill func(io.Writer) error
	}{{f.chrome, f.recorder.WriteChrome}, {f.etdump, f.recorder.WriteETDump}} {
		if to.path == "" {
			continue
		}
		file, err := output.CreateFile(ctx, to.path)
		if err != nil {
			return &output.Error{Err: err}
		}
		f.files = append(f.files, profileFile{file, to.fill})
	}
	return nil
}

// write hands out what was recorded.
func (f *profileFlags) write(a *app) error {
	if f.recorder.Dropped > 0 {
		a.note("the first %d events are kept, %d are not", len(f.recorder.Events), f.recorder.Dropped)
	}
	if f.table {
		if err := f.recorder.WriteTable(a.notes); err != nil {
			return err
		}
	}
	for _, file := range f.files {
		if err := file.Fill(file.fill); err != nil {
			return err
		}
	}
	return nil
}

// close ends what was not written.
func (f *profileFlags) close() {
	for _, file := range f.files {
		file.Close()
	}
}
