package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/openfile"
)

// maxConfig bounds a configuration file.
const maxConfig = 1 << 20

// config is a configuration file: an object of flags, and models with their own flags.
type config struct {
	flags  map[string]any
	models []map[string]any
}

// readConfig reads a file. Its keys are flag names.
func readConfig(ctx context.Context, path string) (*config, error) {
	text, err := openfile.ReadFile(ctx, path, openfile.Rules{Limit: maxConfig})
	if err != nil {
		return nil, err
	}
	c := &config{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&c.flags); err != nil {
		return nil, session.Usage("%s: %w", path, err)
	}
	if decoder.More() {
		return nil, session.Usage("%s: extra bytes after the object", path)
	}
	models, _ := c.flags["models"].([]any)
	if c.flags["models"] != nil && models == nil {
		return nil, session.Usage("%s: models is not an array", path)
	}
	delete(c.flags, "models")
	for i, m := range models {
		object, ok := m.(map[string]any)
		if !ok {
			return nil, session.Usage("%s: models[%d] is not an object", path, i)
		}
		c.models = append(c.models, object)
	}
	return c, nil
}

// apply sets the flags that the command line does not set.
func (c *config) apply(flags *pflag.FlagSet) error {
	for _, name := range slices.Sorted(maps.Keys(c.flags)) {
		f := flags.Lookup(name)
		if f == nil || name == "config" {
			return session.Usage("configuration: no flag --%s", name)
		}
		if f.Changed {
			continue
		}
		words, err := wordsOf(name, c.flags[name])
		if err != nil {
			return err
		}
		for _, word := range words {
			if err := flags.Set(name, word); err != nil {
				return session.Usage("configuration: %s: %w", name, err)
			}
		}
	}
	return nil
}

// wordsOf returns the values of a flag, several for an array.
func wordsOf(name string, value any) (words []string, err error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case json.Number, bool:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		for _, item := range v {
			more, err := wordsOf(name, item)
			if err != nil || len(more) != 1 {
				return nil, session.Usage("configuration: %s: %v", name, item)
			}
			words = append(words, more...)
		}
		return words, nil
	}
	return nil, session.Usage("configuration: %s: %v, want a string, a number, a bool or an array of them", name, value)
}

// modelOf returns a model of a configuration file: the command line's flags, overridden by its own.
func modelOf(object map[string]any, options *session.Options, limits *Limits) (*Model, error) {
	m := &Model{Options: *options, Limits: *limits}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	m.Limits.AddFlags(own)
	var others []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		words, err := wordsOf(name, object[name])
		if err != nil {
			return nil, err
		}
		for _, word := range words {
			switch {
			case name == "name":
				m.Name = word
			case name == "path":
				m.Path = word
			case own.Lookup(name) != nil:
				err = own.Set(name, word)
			default:
				others = append(others, "--"+name+"="+word)
			}
			if err != nil {
				return nil, session.Usage("configuration: model %s: %s: %w", m.Name, name, err)
			}
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
// flags are set unless the command line sets them.
func Models(ctx context.Context, flags *pflag.FlagSet, path string, arguments []string,
	options *session.Options, limits *Limits) (models []*Model, err error) {
	c := &config{}
	if path != "" {
		if c, err = readConfig(ctx, path); err != nil {
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
		m, err := modelOf(object, options, limits)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	if len(models) == 0 {
		return nil, session.Usage("no model, want MODEL.pte or --config FILE with models")
	}
	return models, nil
}
