package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/isolate"
	"github.com/spf13/pflag"
)

// WorkerCommand is the command that the process of an isolated model runs.
const WorkerCommand = "__worker"

// openIsolated opens the model's file and starts a process that loads it.
func (m *served) openIsolated(ctx context.Context) (serve.Program, error) {
	ctx = m.confined(ctx)
	files, use := m.begin()
	exits := m.counts.exits.WithLabelValues(m.Name) // the series is there before the first one
	o := isolate.Options{Instances: m.instances(), Unbounded: m.body * int64(m.MaxBatch), Shared: int64(m.IsolateMemory), Grace: m.timeout(),
		Observer: use,
		Loaded:   func(digest string) { m.metrics.Model(m.Name, m.known(digest)) },
		Ended:    func(error) { exits.Inc() }, Log: m.log.With("model", m.Name)}
	for _, b := range all.Backends() {
		o.Backends = append(o.Backends, b.ID())
	}
	if lib, err := xnn.Open(""); err == nil && filepath.IsAbs(lib.Path) {
		o.Libraries = []string{filepath.Dir(lib.Path)}
	}
	var err error
	if o.Args, o.Files, err = m.workerArgs(ctx, files); err != nil {
		return nil, err
	}
	p, err := isolate.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	m.warned.Do(func() {
		for _, l := range isolate.Missing(p.Layers()) {
			m.log.Warn("isolation incomplete", "model", m.Name, "without", l.Name, "error", l.Err)
		}
	})
	return p, nil
}

// workerArgs returns the arguments of the model's process, and the files that they refer to. The
// flags are followed by the paths that replace the files' names in messages. If signatures are
// required, they are verified here, and the process is told the digests of the files.
func (m *Model) workerArgs(ctx context.Context, checked *modelFiles) (args []string, files []*os.File, err error) {
	var paths []string
	replace := func(path string) string {
		paths = append(paths, path)
		return isolate.FilePath(len(paths) - 1)
	}
	replace(m.Path)
	flags, err := m.Isolated(replace)
	if err != nil {
		return nil, nil, err
	}
	args = append([]string{WorkerCommand, "--instances", strconv.Itoa(m.instances()), "--isolate",
		"--isolate-memory", strconv.FormatInt(int64(m.IsolateMemory), 10)}, flags...)
	for _, name := range m.Methods {
		args = append(args, "--method", name)
	}
	for _, path := range paths {
		f, err := openRegular(ctx, path)
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		files = append(files, f)
		if checked.trust == "" {
			continue
		}
		digest, err := checked.checkOpen(ctx, path, f)
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		args = append(args, "--"+verifiedFlag+"="+digest)
	}
	return append(append(args, "--"), paths...), files, nil
}

// verifiedFlag is the flag of a worker with the digest of each file that was verified, in their order.
const verifiedFlag = "verified"

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}

// Work is the main function of an isolated model's process.
func Work(args []string) error {
	m := &Model{Name: "isolated", Path: isolate.FilePath(0), Limits: DefaultLimits()}
	m.Say = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	flags := pflag.NewFlagSet(WorkerCommand, pflag.ContinueOnError)
	m.Options.AddFlags(flags)
	m.Limits.AddFlags(flags)
	var verified []string
	flags.Var(session.Texts(&verified), verifiedFlag, "")
	if err := flags.Parse(args); err != nil {
		return session.Usage("%w", err)
	}
	names := make(map[string]string)
	for i, path := range flags.Args() {
		names[isolate.FilePath(i)] = path
	}
	var known map[string]string
	for i, digest := range verified {
		if known == nil {
			known = make(map[string]string)
		}
		known[isolate.FilePath(i)] = digest
	}
	for _, b := range all.Backends() {
		b.Probe() // opens libraries while that is possible
	}
	return isolate.Work(&isolate.Job{Open: m.openHere(known), Methods: m.Methods, Instances: m.instances(),
		Memory: int64(m.IsolateMemory), Names: names})
}

// openHere returns the function that opens the model in its isolated process. known are the digests of
// its files, if they were verified.
func (m *Model) openHere(known map[string]string) func(context.Context, etrun.Observer) (serve.Program, string, error) {
	return func(ctx context.Context, observer etrun.Observer) (serve.Program, string, error) {
		files := &modelFiles{known: known}
		p, err := m.open(ctx, files, etrun.WithObserver(observer))
		if err != nil {
			return nil, "", err
		}
		s := &served{Model: m}
		s.note(p)
		collect.Loaded()
		return serve.Local(p, s.check), files.digest(), nil
	}
}
