package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/serve"
)

// applied are the models that a daemon has, and their states when they were applied.
type applied struct {
	outcome outcome
	models  map[string]string // state of each model that was applied or has failed, see Model.state
	failed  map[string]bool
	next    map[string]string // states that the last look has seen; a change counts when it is seen twice
	retries map[string]retry  // models without room in memory
}

// outcome counts what became of models.
type outcome struct{ added, changed, removed, failed int }

// retry is when a model without room in memory is tried again, and the pause before.
type retry struct {
	at    time.Time
	pause time.Duration
}

// Bounds of the pause, after which others may have been unloaded. A model may be opened before it is known that it does not fit.
const (
	minPause = time.Second
	maxPause = time.Minute
)

// removed is the state of a model that is no longer there.
const removed = "removed"

// state describes a model: its settings and the sizes, times and numbers of its files. If none changes a load has the same result.
func (m *Model) state() string {
	var b strings.Builder
	fmt.Fprintln(&b, m.Path, m.Version, m.Options.Arguments())
	flags, limits := pflag.NewFlagSet("", pflag.ContinueOnError), m.Limits
	limits.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) { fmt.Fprintln(&b, f.Name, session.FlagWords(f)) })
	for _, path := range m.sources() {
		for _, file := range []string{path, path + ".minisig"} {
			info, err := os.Stat(file)
			if err != nil {
				fmt.Fprintln(&b, file)
				continue
			}
			inode := uint64(0)
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				inode = s.Ino
			}
			fmt.Fprintln(&b, file, info.Size(), info.ModTime().UnixNano(), inode)
		}
	}
	return b.String()
}

// sources are the files of a model.
func (m *Model) sources() []string {
	list := append([]string{m.Path}, m.Options.Files()...)
	for _, path := range []string{m.Tokenizer, m.Template, m.described} {
		if path != "" {
			list = append(list, path)
		}
	}
	return list
}

// fileBytes is the size of a model's files.
func (m *Model) fileBytes() (n int64) {
	for _, path := range m.sources() {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}

// folderModels returns the models of the folder. One that cannot be described fails alone.
func (d *Daemon) folderModels(ctx context.Context) (models []*Model, faults map[string]error, err error) {
	if d.Folder == "" {
		return nil, nil, nil
	}
	entries, err := entriesOf(d.Folder)
	if err != nil {
		return nil, nil, fmt.Errorf("--models: %w", err)
	}
	faults = make(map[string]error)
	for _, e := range entries {
		m, err := e.model(ctx, d.Common, d.CommonLimits)
		switch {
		case errors.Is(err, errTwice): // the name is that of another
			faults[e.path] = err
		case err != nil:
			faults[e.name] = err
		case slices.ContainsFunc(d.Models, func(other *Model) bool { return other.Name == e.name }):
			faults[e.path] = fmt.Errorf("a model of the command line or the configuration has the name %q", e.name)
		default:
			models = append(models, m)
		}
	}
	return models, faults, nil
}

// apply adds, replaces and removes models, one by one. Those whose state is the same are untouched. With settled, changes
// count when two looks in succession have seen them: a file may be written meanwhile. Without, models that failed before are
// tried again.
func (d *Daemon) apply(ctx context.Context, settled bool) error {
	inFolder, faults, err := d.folderModels(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]string)
	for _, m := range append(slices.Clone(d.Models), inFolder...) {
		next[m.Name] = m.state()
		if d.isDue(m.Name, next[m.Name], settled) && ctx.Err() == nil {
			d.applyModel(ctx, m, next[m.Name])
		}
	}
	for name, fault := range faults {
		if _, other := next[name]; other {
			continue
		}
		next[name] = fault.Error()
		if d.isDue(name, next[name], settled) {
			d.applied.models[name], d.applied.failed[name] = next[name], true
			d.log.Error("model not loaded", "model", name, "error", fault)
			d.applied.outcome.failed++
			_ = d.server.PutFailed(faulty(name, fault), fault) // what is no name of a model is in the log only
		}
	}
	for name := range d.applied.models {
		if _, there := next[name]; !there {
			next[name] = removed
			if d.isDue(name, removed, settled) {
				d.removeModel(name)
			}
		}
	}
	d.applied.next = next
	return nil
}

// faulty is the configuration of a model that cannot be described.
func faulty(name string, fault error) serve.Config {
	return serve.Config{Name: name, Start: func(context.Context) (serve.Program, error) { return nil, fault }}
}

// isDue reports whether a state is to be applied.
func (d *Daemon) isDue(name, state string, settled bool) bool {
	if d.applied.models[name] == state {
		a, waits := d.applied.retries[name]
		return d.applied.failed[name] && (!settled || waits && !time.Now().Before(a.at))
	}
	return !settled || d.applied.next[name] == state
}

// applyModel adds or replaces a model.
func (d *Daemon) applyModel(ctx context.Context, m *Model, state string) {
	what, count := "model added", &d.applied.outcome.added
	if old := d.server.Model(m.Name); old != nil && old.State() != serve.Failed {
		what, count = "model changed", &d.applied.outcome.changed
	}
	s := d.served(m)
	s.quieten(true)
	err := d.server.Put(ctx, s.config())
	s.quieten(false)
	d.applied.models[m.Name], d.applied.failed[m.Name] = state, err != nil
	if said := d.postpone(m.Name, err); err != nil {
		d.applied.outcome.failed++
		if !said {
			d.log.Error("model not loaded", "model", m.Name, "path", m.Path, "error", err)
		}
		_ = d.server.PutFailed(s.config(), err) // fails for names that Put refuses
		return
	}
	*count++
	d.counts.watch(d.server.Model(m.Name), d.metrics)
	d.log.Info(what, "model", m.Name, "path", m.Path)
}

// postpone records when a model is tried again for which there was no room, and reports whether that was so the last time, too.
func (d *Daemon) postpone(name string, err error) (said bool) {
	last, said := d.applied.retries[name]
	delete(d.applied.retries, name)
	if !errors.Is(err, serve.ErrNoRoom) {
		return false
	}
	pause := min(max(2*last.pause, minPause), maxPause)
	d.applied.retries[name] = retry{time.Now().Add(pause), pause}
	return said
}

// removeModel removes a model.
func (d *Daemon) removeModel(name string) {
	delete(d.applied.models, name)
	delete(d.applied.failed, name)
	delete(d.applied.retries, name)
	if d.server.Remove(name) {
		d.applied.outcome.removed++
		d.log.Info("model removed", "model", name)
		d.metrics.Remove(name)
		d.counts.remove(name)
	}
}

// begin records the models that the server was created with.
func (d *Daemon) begin() {
	d.applied = applied{models: make(map[string]string), failed: make(map[string]bool), retries: make(map[string]retry)}
	for _, m := range d.Models {
		d.applied.models[m.Name] = m.state()
	}
}

// watchFolder looks for changes in the folder of models until ctx ends.
func (d *Daemon) watchFolder(ctx context.Context) {
	if d.Folder == "" || d.Interval == 0 {
		return
	}
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		said = d.look(ctx, said)
	}
}

// look applies changes in the folder. It logs an error unless it was said before, and returns its text.
func (d *Daemon) look(ctx context.Context, said string) string {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	err := d.apply(ctx, true)
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if err.Error() != said {
		d.log.Error("models not reloaded", "error", err)
	}
	return err.Error()
}

// checkMapped returns an error if files of a folder of models would be mapped into the server: who truncates one would end it.
func checkMapped(folder string, options *session.Options, limits *Limits) error {
	if folder != "" && options.Mmap() && !limits.Isolate {
		return session.Usage("--mmap with --models: a file that is truncated would end the server; with --isolate it ends the model's process")
	}
	return nil
}

// checkNames returns an error if a name is not valid, or that of two models.
func checkNames(models []*Model) error {
	known := make(map[string]bool)
	for _, m := range models {
		if err := serve.CheckName(m.Name); err != nil {
			return err
		}
		if known[m.Name] {
			return fmt.Errorf("two models with the name %q", m.Name)
		}
		known[m.Name] = true
	}
	return nil
}
