package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/openfile"
)

// maxConfig bounds a configuration file.
const maxConfig = 1 << 20

// config is a configuration file: an object of flags, and models with their own flags.
type config struct {
	flags  []setting
	models [][]setting
}

// setting is a flag in a configuration file.
type setting struct {
	place  string // file and line
	name   string
	words  []string // several for an array
	isText bool     // strings only
	isBool bool     // bools only
}

func (s *setting) fault(format string, args ...any) error {
	return session.Usage("%s: %s: %w", s.place, s.name, fmt.Errorf(format, args...))
}

// set sets the flag. Others are keys that are valid beside the flags, for the suggestion of a misspelled one.
func (s *setting) set(flags *pflag.FlagSet, others ...string) error {
	f := flags.Lookup(s.name)
	switch {
	case f == nil:
		return s.fault("no flag --%s%s", s.name, nearest.Hint(s.name, append(keysOf(flags), others...)))
	case s.isBool != (f.Value.Type() == "bool"):
		return s.fault("%.200q, want a value of the type %s", s.words, f.Value.Type())
	case f.Value.Type() == "string" && !s.isText:
		return s.fault("%.200q, want a string", s.words)
	}
	if err := session.CheckEmpty(f, s.words); err != nil { // would turn --trust or --token-file off
		return session.Usage("%s: %s %w", s.place, s.name, err)
	}
	for _, word := range s.words {
		if err := flags.Set(s.name, word); err != nil {
			return s.fault("%w", session.FlagFault(err))
		}
	}
	return nil
}

// keysOf returns the names of flags that may be keys of a configuration.
func keysOf(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != configKey {
			names = append(names, f.Name)
		}
	})
	return names
}

// configKey is the flag of the configuration file, which is no key in it.
const configKey = "config"

// modelsKey is the key of the models, which is no flag.
const modelsKey = "models"

// configReader reads a configuration file.
type configReader struct {
	path string
	text []byte
	dec  *jsontext.Decoder
}

// readConfig reads a file. Its keys are flag names. If trust is a key, the file needs a signature.
func readConfig(ctx context.Context, path, trust string) (*config, error) {
	text, err := openfile.ReadFile(ctx, path, openfile.Rules{Limit: maxConfig})
	if err == nil {
		err = verifySignature(ctx, trust, path, bytes.NewReader(text))
	}
	if err != nil {
		return nil, err
	}
	r, c := &configReader{path, text, jsontext.NewDecoder(bytes.NewBuffer(text))}, &config{}
	c.flags, err = r.only("the configuration", map[string]func() error{modelsKey: func() error { return r.models(c) }})
	return c, err
}

// only reads an object that is all of the file, see object.
func (r *configReader) only(what string, others map[string]func() error) ([]setting, error) {
	list, err := r.object(what, others)
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); err != io.EOF {
		return nil, r.fault("extra bytes after the object")
	}
	return list, nil
}

// place returns the file and the line of what was read last.
func (r *configReader) place() string {
	return fmt.Sprintf("%s:%d", r.path, 1+bytes.Count(r.text[:r.dec.InputOffset()], []byte("\n")))
}

func (r *configReader) fault(format string, args ...any) error {
	return session.Usage("%s: %w", r.place(), fmt.Errorf(format, args...))
}

// token reads one token.
func (r *configReader) token() (jsontext.Token, error) {
	t, err := r.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return t, r.fault("the file ends too early")
	case err != nil:
		return t, r.fault("%w", jsonerror.Plain(err))
	}
	return t, nil
}

// begin reads a delimiter.
func (r *configReader) begin(kind jsontext.Kind, otherwise string) error {
	t, err := r.token()
	if err == nil && t.Kind() != kind {
		return r.fault("%s", otherwise)
	}
	return err
}

// models reads the list of models.
func (r *configReader) models(c *config) error {
	if err := r.begin('[', "models: not an array"); err != nil {
		return err
	}
	for r.dec.PeekKind() != ']' {
		m, err := r.object(fmt.Sprintf("models[%d]", len(c.models)), nil)
		if err != nil {
			return err
		}
		c.models = append(c.models, m)
	}
	_, err := r.token()
	return err
}

// object reads an object of settings. The members in others have their own readers.
func (r *configReader) object(what string, others map[string]func() error) (list []setting, err error) {
	if err := r.begin('{', what+": not an object"); err != nil {
		return nil, err
	}
	for r.dec.PeekKind() != '}' {
		name, err := r.token()
		if err != nil {
			return nil, err
		}
		if read := others[name.String()]; read != nil {
			err = read()
		} else {
			s := setting{place: r.place(), name: name.String()}
			err = r.values(&s)
			list = append(list, s)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = r.token()
	return list, err
}

// values reads the value of a setting, or an array of values.
func (r *configReader) values(s *setting) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	s.isText, s.isBool = true, true
	if t.Kind() != '[' {
		return r.value(s, t)
	}
	for {
		if t, err = r.token(); err != nil || t.Kind() == ']' {
			s.isBool = s.isBool && len(s.words) > 0
			return err
		}
		if err := r.value(s, t); err != nil {
			return err
		}
	}
}

func (r *configReader) value(s *setting, t jsontext.Token) error {
	kind := t.Kind()
	if kind != '"' && kind != '0' && kind != 't' && kind != 'f' {
		return s.fault("%v, want a string, a number, a bool or an array of them", kind)
	}
	s.words = append(s.words, t.String())
	s.isText, s.isBool = s.isText && kind == '"', s.isBool && (kind == 't' || kind == 'f')
	return nil
}
