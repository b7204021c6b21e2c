package openfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// folderKey is the key of a folder in a context.
type folderKey struct{}

// Within returns a context with which Open and ReadFile open files of a folder only; the folder may be a link. An empty one lifts
// this. Links within the folder are followed. What was opened is compared with what the folder has, so that links that change
// meanwhile lead nowhere else.
func Within(ctx context.Context, folder string) context.Context {
	return context.WithValue(ctx, folderKey{}, folder)
}

// ErrOutside is the error, inside a *fs.PathError, for a file that is not in the folder of Within.
var ErrOutside = errors.New("a link out of the folder")

// inFolder returns an error if an open file is not in the folder of the context.
func inFolder(ctx context.Context, file *os.File, path string) error {
	folder, _ := ctx.Value(folderKey{}).(string)
	if folder == "" {
		return nil
	}
	opened, err := file.Stat()
	if err != nil {
		return err
	}
	if entry, err := statIn(folder, path); err != nil || !os.SameFile(entry, opened) {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w %s, in which it must be", ErrOutside, folder)}
	}
	return nil
}

// statIn describes the file of a folder that a path leads to. It fails if that is not in the folder.
func statIn(folder, path string) (fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if real, err = filepath.Abs(real); err == nil {
		target, err = filepath.Abs(target)
	}
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(real, target)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(name)
}
