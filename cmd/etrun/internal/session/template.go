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
// tokenizer_config.json or chat_template.json, with that for tools in its additional_chat_templates. It returns nil if there is none,
// or the tokenizer is not a folder. The content of the files is checked first, unless check is nil.
func FolderTemplate(ctx context.Context, folder string, check func(name string, data []byte) error) (*text.Template, error) {
	if !isFolder(folder) {
		return nil, nil
	}
	read := func(name string) (string, []byte, error) {
		path, data, err := folderFile(ctx, folder, name, check)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil, nil
		}
		return path, data, err
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
	jinja := func(file string) (*text.Template, error) {
		path, data, err := read(file)
		if err != nil || data == nil {
			return nil, err
		}
		return text.NewJinjaTemplate(path, string(data), bos, eos)
	}
	t, err := jinja("chat_template.jinja")
	if err == nil && t == nil && !text.HasTemplate(config) {
		name, config, err = read("chat_template.json")
	}
	if err == nil && t == nil && text.HasTemplate(config) {
		t, err = text.NewTemplate(name, string(config))
	}
	if err != nil || t == nil {
		return nil, err
	}
	tools, err := jinja("additional_chat_templates/tool_use.jinja")
	switch {
	case err != nil:
		return nil, err
	case tools != nil:
		return t.AddTools(tools), nil
	}
	return t, nil
}

// Processor returns the contents of the preprocessor_config.json in the folder that a tokenizer is given as, or beside the tokenizer; nil if
// there is none. The content is checked first, unless check is nil.
func Processor(ctx context.Context, tokenizer string, check func(name string, data []byte) error) ([]byte, error) {
	if !isFolder(tokenizer) {
		tokenizer = filepath.Dir(tokenizer)
	}
	_, data, err := folderFile(ctx, tokenizer, "preprocessor_config.json", check)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// folderFile reads a file of a folder. The content is checked first, unless check is nil.
func folderFile(ctx context.Context, folder, name string, check func(name string, data []byte) error) (
	path string, data []byte, err error) {
	path = filepath.Join(folder, name)
	data, err = openfile.ReadFile(ctx, path, openfile.Rules{Limit: maxTemplate})
	if err == nil && check != nil {
		err = check(path, data)
	}
	return path, data, err
}

// folderEmbedding returns the options of a model of sentence-transformers in the folder that a tokenizer is given as; found is
// false if there are none. The content of the files is checked first, unless check is nil.
func folderEmbedding(ctx context.Context, folder string, check func(name string, data []byte) error) (
	o text.EmbedOptions, found bool, err error) {
	if !isFolder(folder) {
		return o, false, nil
	}
	o, found, err = text.SentenceOptions(func(name string) ([]byte, error) {
		_, data, err := folderFile(ctx, folder, name, check)
		return data, err
	})
	if e, ok := errors.AsType[*text.SettingsError](err); ok {
		e.File = filepath.Join(folder, e.File)
	}
	return o, found, err
}
