package daemon

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// apply sets the flags that the command line does not set.
func (c *config) apply(flags *pflag.FlagSet) error {
	changed := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { changed[f.Name] = true })
	for _, s := range c.flags {
		if s.name == configKey {
			return s.fault("not in a configuration")
		}
		if changed[s.name] {
			continue
		}
		if err := s.set(flags, modelsKey); err != nil {
			return err
		}
	}
	return nil
}

// modelOf returns a model of a configuration file: the command line's flags, overridden by its own. path is its file if the object
// names none.
func modelOf(object []setting, options *session.Options, limits *Limits, path string) (*Model, error) {
	m := &Model{Path: path, Options: *options, Limits: *limits}
	own, known := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&m.Name, "name", "", "`NAME`")
	own.StringVar(&m.Path, "path", path, "`FILE`")
	m.Limits.AddFlags(own)
	new(session.Options).AddFlags(known)
	var others []string
	for _, s := range object {
		flags := own
		if own.Lookup(s.name) == nil {
			flags = known
			for _, word := range s.words {
				others = append(others, "--"+s.name+"="+word)
			}
		}
		if err := s.set(flags, keysOf(own)...); err != nil {
			return nil, err
		}
	}
	with, err := options.With(others)
	if err != nil {
		return nil, session.Usage("configuration: model %s: %w", m.Name, err)
	}
	m.Options = *with
	return m, m.complete()
}

// modelNamed returns a model of the command line, NAME=PATH or a path.
func modelNamed(argument string, options *session.Options, limits *Limits) (*Model, error) {
	m := &Model{Options: *options, Limits: *limits, Path: argument}
	if name, path, ok := strings.Cut(argument, "="); ok && !strings.Contains(name, "/") {
		m.Name, m.Path = name, path
	}
	return m, m.complete()
}

// complete sets a missing name to that of the file.
func (m *Model) complete() error {
	if m.Path == "" || m.Path == "-" {
		return session.Usage("model %q: path %q, want a file", m.Name, m.Path)
	}
	if m.Name == "" {
		m.Name = strings.TrimSuffix(filepath.Base(m.Path), filepath.Ext(m.Path))
	}
	return m.Limits.check()
}

// Models returns the models of the command line and of the configuration file, if any. The file's
// flags are set unless the command line sets them. A key of the command line (--trust) also holds for
// the file; one in the file cannot.
func Models(ctx context.Context, flags *pflag.FlagSet, path string, arguments []string,
	options *session.Options, limits *Limits) (models []*Model, err error) {
	c := &config{}
	if path != "" {
		if c, err = readConfig(ctx, path, limits.Trust); err != nil {
			return nil, err
		}
		if err := c.apply(flags); err != nil {
			return nil, err
		}
	}
	for _, argument := range arguments {
		m, err := modelNamed(argument, options, limits)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	for _, object := range c.models {
		m, err := modelOf(object, options, limits, "")
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	if folder := flags.Lookup(folderFlag); len(models) == 0 && (folder == nil || folder.Value.String() == "") {
		return nil, session.Usage("no model, want MODEL.pte, --config FILE with models, or --models FOLDER")
	}
	return models, nil
}
