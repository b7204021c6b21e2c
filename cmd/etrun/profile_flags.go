package main

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/runtime/trace"
)

// maxEvents bounds what a long run keeps of its events.
const maxEvents = 1 << 20

// profileFlags say where the times of a run's instructions go.
type profileFlags struct {
	table    bool
	paths    [5]string // of profileFiles, empty for none
	recorder trace.DebugRecorder
	cold     int // events up to the end of the first run, which do not count where there are more runs
	files    []profileFile
}

// profileFile is a file of events that is written when the run has ended.
type profileFile struct {
	*output.File
	fill func(io.Writer) error
}

// profileFiles are the files that a profile can go to.
var profileFiles = [5]struct {
	flag, help string
	fill       func(f *profileFlags, w io.Writer) error
}{
	{"trace", "write a Chrome trace, for Perfetto, to `FILE`.json",
		func(f *profileFlags, w io.Writer) error { return f.recorder.WriteChrome(w) }},
	{"etdump", "write an ETDump, for ExecuTorch's Inspector, to `FILE`.etdp",
		func(f *profileFlags, w io.Writer) error { return f.recorder.WriteETDump(w) }},
	{"etdump-values", "with --etdump: write the values of the first run, the Inspector's debug buffer, to `FILE`.bin",
		func(f *profileFlags, w io.Writer) error { _, err := w.Write(f.recorder.Buffer); return err }},
	{"pprof", "write a profile for go tool pprof to `FILE`.pb.gz",
		func(f *profileFlags, w io.Writer) error { return profile.WritePprof(w, f.profiles()) }},
	{"flame", "draw a flame graph into `FILE`.svg",
		func(f *profileFlags, w io.Writer) error { return profile.WriteFlame(w, f.profiles()) }},
}

// addFiles adds the flags of files.
func (f *profileFlags) addFiles(flags *pflag.FlagSet) {
	for i, file := range profileFiles {
		flags.StringVar(&f.paths[i], file.flag, "", file.help)
	}
}

// wanted reports whether anybody asked.
func (f *profileFlags) wanted() bool { return f.table || f.paths != [5]string{} }

// options have the program observed, if anybody asked.
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

// Places in profileFiles.
const (
	etdumpFile = 1
	valuesFile = 2
)

// keepsValues reports whether the values of instructions are asked for.
func (f *profileFlags) keepsValues() bool { return f.paths[valuesFile] != "" }

// showValues has them seen, up to a number of bytes.
func (f *profileFlags) showValues(o *session.Options) error {
	if !f.keepsValues() {
		return nil
	}
	if f.paths[etdumpFile] == "" {
		return session.Usage("--etdump-values without --etdump, which says what the values are")
	}
	o.ShowValues()
	f.recorder.MaxBytes = o.InputLimit()
	return nil
}

// create begins the files, before anything runs.
func (f *profileFlags) create(ctx context.Context) error {
	for i, path := range f.paths {
		if path == "" {
			continue
		}
		file, err := output.CreateFile(ctx, path)
		if err != nil {
			return &output.Error{Err: err}
		}
		f.files = append(f.files, profileFile{file, func(w io.Writer) error { return profileFiles[i].fill(f, w) }})
	}
	return nil
}

// firstRunEnded notes that what comes is not cold.
func (f *profileFlags) firstRunEnded() { f.cold, f.recorder.Paused = len(f.recorder.Events), true }

// profiles are of the runs after the first, or of that where there is no other.
func (f *profileFlags) profiles() []*profile.Profile {
	if list := profile.New(f.recorder.Events[f.cold:]); len(list) > 0 {
		return list
	}
	return profile.New(f.recorder.Events)
}

// write hands out what was recorded: files, and the table of --profile.
func (f *profileFlags) write(a *app) error {
	if f.recorder.Dropped > 0 {
		a.note("the first %d events are kept, %d are not", len(f.recorder.Events), f.recorder.Dropped)
	}
	if n := f.recorder.DroppedValues; n > 0 {
		a.note("%s: %s not kept: of a type that the Inspector does not know, or beyond %d bytes; --max-memory gives more",
			f.paths[valuesFile], count(n, "value", "values"), f.recorder.MaxBytes)
	}
	if f.table {
		for _, p := range f.profiles() {
			if err := p.WriteTable(a.notes, p.ByOperator(), printable); err != nil {
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

// close ends what was not written.
func (f *profileFlags) close() {
	for _, file := range f.files {
		file.Close()
	}
}
