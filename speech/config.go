package speech

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// maxConfigFile bounds the files of a configuration, but for its tokenizer.
const maxConfigFile = 16 << 20

// OpenConfig reads the files of a program of speech with some methods: those of a folder, or a tokenizer. check may be nil.
func OpenConfig(ctx context.Context, from string, methods []string, check func(path string, data []byte) error) (c Config, err error) {
	read := func(path string) ([]byte, error) {
		data, err := openfile.ReadFile(ctx, path, openfile.Rules{Limit: maxConfigFile})
		if err == nil && check != nil {
			err = check(path, data)
		}
		return data, err
	}
	info, err := os.Stat(from)
	if err != nil {
		return c, err
	}
	switch {
	case info.IsDir():
		for _, f := range []struct {
			to   *[]byte
			name string
		}{{&c.Generation, "generation_config.json"}, {&c.Vocabulary, "vocab.json"}, {&c.Features, "preprocessor_config.json"}} {
			if *f.to, err = read(filepath.Join(from, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return c, err
			}
		}
	case filepath.Base(from) == "vocab.json":
		c.Vocabulary, err = read(from)
		return c, err
	}
	if !slices.ContainsFunc(methods, func(m string) bool { return m == "joint" || m == "text_decoder" || m == "decode" }) {
		return c, nil // no tokens
	}
	if c.Tokenizer, err = tokenizer.OpenChecked(ctx, from, check); err != nil {
		err = fmt.Errorf("the tokenizer of the model: %w", err)
	}
	return c, err
}
