package main

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/runtime/trace"
)

// maxEvents limits the recorded events of a long run.
const maxEvents = 1 << 20

// profileFlags are the flags for profiles of a run.
type profileFlags struct {
	table    bool
	paths    [5]string // by index of profileFiles, empty if not set
	recorder trace.DebugRecorder
	cold     int // events up to the end of the first run; ignored if there are more runs
	files    []profileFile
}

// profileFile is a file of events that is written at the end.
type profileFile struct {
	*output.File
	fill func(io.Writer) error
}

// profileFiles are the profile formats.
var profileFiles = [5]struct {
	flag, help string
	fill       func(f *profileFlags, w io.Writer) error
}{
	{"trace", "write a Chrome trace (for Perfetto) to `FILE`.json",
		func(f *profileFlags, w io.Writer) error { return f.recorder.WriteChrome(w) }},
	{"etdump", "write an ETDump (for ExecuTorch's Inspector) to `FILE`.etdp",
		func(f *profileFlags, w io.Writer) error { return f.recorder.WriteETDump(w) }},
	{"etdump-values", "with --etdump: write the values of the first run (the Inspector's debug buffer) to `FILE`.bin",
		func(f *profileFlags, w io.Writer) error { return f.recorder.WriteValues(w) }},
	{"pprof", "write a profile for go tool pprof to `FILE`.pb.gz",
		func(f *profileFlags, w io.Writer) error { return profile.WritePprof(w, f.profiles()) }},
	{"flame", "draw a flame graph to `FILE`.svg",
		func(f *profileFlags, w io.Writer) error { return profile.WriteFlame(w, f.profiles()) }},
}

// addFiles adds the file flags.
func (f *profileFlags) addFiles(flags *pflag.FlagSet) {
	for i, file := range profileFiles {
		flags.StringVar(&f.paths[i], file.flag, "", file.help)
	}
}

// wanted reports whether any profile is requested.
func (f *profileFlags) wanted() bool { return f.table || f.paths != [5]string{} }

// options returns the observer option, if any profile is requested.
func (f *profileFlags) options() []etrun.Option {
	if !f.wanted() {
		return nil
	}
	f.recorder.Max = maxEvents
	if f.keepsValues() {
		return []etrun.Option{etrun.WithObserver(&f.recorder)}
	}
	return []etrun.Option{etrun.WithObserver(&f.recorder.Recorder)}
}

// Indexes of profileFiles.
const (
	etdumpFile = 1
	valuesFile = 2
)

// keepsValues reports whether the values of instructions are requested.
func (f *profileFlags) keepsValues() bool { return f.paths[valuesFile] != "" }

// showValues makes values visible to the observer, within a memory limit.
func (f *profileFlags) showValues(o *session.Options) error {
	if !f.keepsValues() {
		return nil
	}
	if f.paths[etdumpFile] == "" {
		return session.Usage("--etdump-values requires --etdump")
	}
	o.ShowValues()
	f.recorder.MaxBytes = o.InputLimit()
	return nil
}

// create creates the files, before anything runs.
func (f *profileFlags) create(ctx context.Context) error {
	for i, path := range f.paths {
		if path == "" {
			continue
		}
		file, err := output.CreateFile(ctx, path)
		if err != nil {
			return err
		}
		f.files = append(f.files, profileFile{file, func(w io.Writer) error { return profileFiles[i].fill(f, w) }})
	}
	return nil
}

// firstRunEnded marks the end of the cold events.
func (f *profileFlags) firstRunEnded() { f.cold, f.recorder.Paused = len(f.recorder.Events), true }

// profiles returns the profiles of the runs after the first, or of the first if it is the only one, even if it is not complete.
func (f *profileFlags) profiles() []*profile.Profile {
	for _, events := range [][]trace.Event{f.recorder.Events[f.cold:], f.recorder.Events} {
		if list := profile.New(events); len(list) > 0 {
			return list
		}
	}
	return profile.NewIncomplete(f.recorder.Events)
}

// write writes the recorded events to files, and prints the table of --profile.
func (f *profileFlags) write(a *app) error {
	if f.recorder.Dropped > 0 {
		a.Note("the first %d events were recorded, %d were dropped", len(f.recorder.Events), f.recorder.Dropped)
	}
	if n := f.recorder.DroppedValues; n > 0 {
		a.Note("%s: %s dropped: the Inspector does not support the type, or the limit of %d bytes is reached (set --max-memory)",
			f.paths[valuesFile], cli.Count(n, "value", "values"), f.recorder.MaxBytes)
	}
	if f.table {
		for _, p := range f.profiles() {
			if err := p.WriteTable(a.Notes, p.ByOperator(), cli.Printable); err != nil {
				return err
			}
		}
	}
	for _, file := range f.files {
		if err := file.Fill(file.fill); err != nil {
			return err
		}
	}
	return nil
}

// close removes unwritten files.
func (f *profileFlags) close() {
	for _, file := range f.files {
		file.Close()
	}
}
