package input

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/internal/openfile"
)

// ReadFolder reads the .npy files of a folder as arrays with their names, of at most limit
// bytes in total. Errors are ErrFile or ErrMemory.
func ReadFolder(ctx context.Context, dir string, limit int64) (arrays []*npy.Array, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), ".npy")
		if !ok {
			continue
		}
		path := filepath.Join(dir, file.Name())
		a, err := readFile(ctx, path, limit)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", reasonOf(err), path, err)
		}
		a.Name = name
		limit -= int64(len(a.Data))
		arrays = append(arrays, a)
	}
	if len(arrays) == 0 {
		return nil, fmt.Errorf("%w: %s: no .npy files in the folder", ErrFile, dir)
	}
	return arrays, nil
}

// readFile reads one .npy file to its end.
func readFile(ctx context.Context, path string, limit int64) (*npy.Array, error) {
	f, err := openfile.Open(ctx, path, openfile.Rules{Start: npy.StartBytes, Check: npy.CheckStart})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, ok := f.Size()
	if !ok {
		size = npy.UnknownSize
	}
	return npy.Read(io.Reader(f), size, limit)
}
