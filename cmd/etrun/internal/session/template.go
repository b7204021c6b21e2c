package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/text"
)

// maxTemplate is the maximum size of a template's file: a tokenizer_config.json also lists tokens.
const maxTemplate = 16 << 20

// ChatTemplate returns the chat template in a file, or the built-in one of that name if there is no
// such file. The content of a file is checked first, unless check is nil.
func ChatTemplate(ctx context.Context, name string, check func(data []byte) error) (*text.Template, error) {
	data, err := openfile.ReadFile(ctx, name, openfile.Rules{Kinds: openfile.Pipes, Limit: maxTemplate})
	if errors.Is(err, fs.ErrNotExist) {
		return text.NamedTemplate(name)
	}
	if err == nil && check != nil {
		err = check(data)
	}
	if err != nil {
		return nil, err
	}
	return text.NewTemplate(name, string(data))
}

// FolderTemplate returns the template of the folder that a tokenizer is given as: of its chat_template.jinja, or else of its
// tokenizer_config.json. It returns nil if there is none, or the tokenizer is not a folder. The content of the files is checked
// first, unless check is nil.
func FolderTemplate(ctx context.Context, folder string, check func(name string, data []byte) error) (*text.Template, error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, nil
	}
	read := func(name string) (string, []byte, error) {
		name = filepath.Join(folder, name)
		data, err := openfile.ReadFile(ctx, name, openfile.Rules{Limit: maxTemplate})
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil, nil
		}
		if err == nil && check != nil {
			err = check(name, data)
		}
		return name, data, err
	}
	name, config, err := read("tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	bos, eos := "", ""
	if config != nil {
		if bos, eos, err = text.SpecialTokens(config); err != nil {
			return nil, &text.TemplateError{Template: name, Err: err}
		}
	}
	jinja, data, err := read("chat_template.jinja")
	switch {
	case err != nil:
		return nil, err
	case data != nil:
		return text.NewJinjaTemplate(jinja, string(data), bos, eos)
	case text.HasTemplate(config):
		return text.NewTemplate(name, string(config))
	}
	return nil, nil
}
