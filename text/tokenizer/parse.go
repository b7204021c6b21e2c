package tokenizer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/etrun-go/etrun/internal/modelfile"
	"github.com/etrun-go/etrun/internal/openfile"
)

// kinds are the kinds of files, each with its test and its parser. llama2.c's files have no magic
// number; their test reads all tokens and is therefore the most specific.
var kinds = []struct {
	is    func(data []byte) bool
	parse func(data []byte) (Tokenizer, error)
}{
	{isLlama2, parseLlama2},
	{isTekken, parseTekken},
	{isJSON, parseJSON},
	{isTiktoken, parseTiktoken},
	{isVocabulary, parseVocabulary},
	{isSentencePiece, parseSentencePiece},
}

// Parse reads a tokenizer from the content of a file. The data is not referenced afterwards.
func Parse(data []byte) (Tokenizer, error) {
	if len(data) > MaxBytes {
		return nil, unsupported("file", "%d bytes, at most %d are allowed", len(data), MaxBytes)
	}
	for _, k := range kinds {
		if !k.is(data) {
			continue
		}
		t, err := k.parse(data)
		if err != nil {
			err = cmp.Or(foreign(data), err)
		}
		return t, err
	}
	if err := foreign(data); err != nil {
		return nil, err
	}
	return nil, unsupported("file", "not a tokenizer.json, tekken.json, SentencePiece model, vocab.txt, tiktoken or llama2.c file; it starts with %.24q",
		data[:min(len(data), 24)])
}

// inFolder are the names of tokenizers in the folder of a model, the most exact first.
var inFolder = []string{"tokenizer.json", "tokenizer.model", "tokenizer.bin", "tekken.json", "vocab.txt"}

// File returns the tokenizer's file in a folder of a model, as Hugging Face publishes them, and other paths unchanged.
func File(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path, nil // opening it fails, if it does not exist
	}
	for _, name := range inFolder {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", &Error{File: path, Class: ErrUnsupported, Err: fmt.Errorf("a folder without %s", strings.Join(inFolder, ", "))}
}

// InFolder reports whether a folder has a tokenizer's file.
func InFolder(folder string) bool {
	file, err := File(folder)
	return err == nil && file != folder
}

// Open reads a tokenizer from a file, or from the folder of a model: see [File]. The content determines its kind.
func Open(path string) (Tokenizer, error) { return OpenChecked(context.Background(), path, nil) }

// OpenChecked is Open with a check of the content of each file that is read, before it is parsed. ctx ends the wait for a pipe.
func OpenChecked(ctx context.Context, path string, check func(path string, data []byte) error) (Tokenizer, error) {
	path, err := File(path)
	if err != nil {
		return nil, err
	}
	read := func(path string, kinds openfile.Kinds) ([]byte, error) {
		data, err := openfile.ReadFile(ctx, path, openfile.Rules{Kinds: kinds, Limit: MaxBytes})
		if err == nil && check != nil {
			err = check(path, data)
		}
		return data, err
	}
	data, err := read(path, openfile.Pipes)
	if err != nil {
		return nil, err
	}
	t, err := Tokenizer(nil), error(nil)
	if isVocabulary(data) && !isJSON(data) {
		config, fault := read(filepath.Join(filepath.Dir(path), "tokenizer_config.json"), 0)
		if fault != nil && !errors.Is(fault, fs.ErrNotExist) {
			return nil, fault
		}
		t, err = ParseVocabulary(data, config)
	} else {
		t, err = Parse(data)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.File = path
	}
	return t, err
}

// instead are the ways out for other files of a model.
var instead = map[string]string{
	modelfile.Jinja:       "a chat template, not a tokenizer; want the tokenizer.json of the model",
	modelfile.Template:    "not a tokenizer; want the tokenizer.json of the model",
	modelfile.Program:     "want the model's tokenizer here",
	modelfile.Safetensors: "weights, not a tokenizer; want the tokenizer.json beside them",
	modelfile.GGUF:        "weights in a form of other programs; want the tokenizer.json of the model",
	modelfile.Zip:         "weights, not a tokenizer; want the tokenizer.json or tokenizer.model beside them",
}

// foreign returns the error for another file of a model, nil if it is none.
func foreign(data []byte) error {
	kind := modelfile.Identify(data)
	if kind == modelfile.Unknown || kind == modelfile.TokenizerJSON || kind == modelfile.Tekken {
		return nil
	}
	return unsupported("file", "%s: %s", kind, cmp.Or(instead[kind], "want the tokenizer.json beside it"))
}
