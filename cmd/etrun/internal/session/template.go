package session

import (
	"context"
	"errors"
	"io/fs"

	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/text"
)

// maxTemplate is the maximum size of a template's file.
const maxTemplate = 1 << 20

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
