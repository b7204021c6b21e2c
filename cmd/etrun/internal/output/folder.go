package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Folder collects the files of a run in a hidden folder and moves them to their final
// paths together. outputs.json is moved last and marks the folder as complete. Close
// without Commit changes nothing.
type Folder struct {
	ctx        context.Context
	dir, stage string
	created    []string // folders that did not exist, outermost first
	calls      []string // staged folders, relative
}

func (e *Error) Error() string { return "output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Open creates dir, if needed, and the hidden folder in it. Canceling the context stops
// writes to pipes that exist in the place of files.
func Open(ctx context.Context, dir string) (*Folder, error) {
	f := &Folder{ctx: ctx, dir: dir}
	if err := f.makeAll(dir); err != nil {
		f.Close()
		return nil, err
	}
	stage, err := os.MkdirTemp(dir, ".etrun-")
	if err != nil {
		f.Close()
		return nil, visible(err, dir)
	}
	f.stage = stage
	return f, nil
}

// makeAll creates path and its parents, and records which ones did not exist.
func (f *Folder) makeAll(path string) error {
	var missing []string
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		missing = append([]string{p}, missing...)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	f.created = append(f.created, missing...)
	return nil
}

// Add stages the outputs of call k and returns their entries, with files relative to the folder. Call 0 belongs to the folder
// itself, call k to call<k>. The files of an outputs.json are relative to its own folder.
func (f *Folder) Add(k int, outputs []*tensor.Value) ([]Entry, error) {
	sub := "."
	if k > 0 {
		sub = fmt.Sprintf("call%d", k)
	}
	dir := filepath.Join(f.stage, sub)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, &Error{err}
	}
	f.calls = append(f.calls, sub)
	describer := Describer{Save: func(name string, t *tensor.Tensor) error {
		return visible(os.WriteFile(filepath.Join(dir, name), t.Data, 0o666), filepath.Join(f.dir, sub, name))
	}}
	entries := []Entry{}
	for i, v := range outputs {
		e, err := describer.Describe(i, v, fmt.Sprintf("out%d", i))
		if err != nil {
			return nil, &Error{err}
		}
		entries = append(entries, e)
	}
	text, err := json.MarshalIndent(entries, "", "  ")
	if err == nil {
		err = visible(os.WriteFile(filepath.Join(dir, index), append(text, '\n'), 0o666), filepath.Join(f.dir, sub, index))
	}
	if err != nil {
		return nil, &Error{err}
	}
	within(sub, entries)
	return entries, nil
}

// within makes the files of entries relative to the parent of their folder.
func within(sub string, entries []Entry) {
	for i := range entries {
		if e := &entries[i]; e.File != "" {
			e.File = filepath.Join(sub, e.File)
		}
		within(sub, entries[i].Items)
	}
}

const index = "outputs.json"

// Commit moves the staged files to their final paths, and replaces those of earlier runs.
func (f *Folder) Commit() error {
	for _, sub := range f.calls {
		if place := filepath.Join(f.dir, sub, index); isRegular(place) {
			if err := os.Remove(place); err != nil {
				return &Error{err}
			}
		}
	}
	for _, sub := range f.calls {
		if err := f.place(sub); err != nil {
			return &Error{err}
		}
	}
	f.created = nil
	f.Close()
	return nil
}

func (f *Folder) place(sub string) error {
	from, to := filepath.Join(f.stage, sub), filepath.Join(f.dir, sub)
	if err := f.makeAll(to); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, file := range files {
		if file.IsDir() || file.Name() == index {
			continue
		}
		if err := f.install(filepath.Join(from, file.Name()), filepath.Join(to, file.Name())); err != nil {
			return err
		}
	}
	return f.install(filepath.Join(from, index), filepath.Join(to, index))
}

// install moves a staged file to its final path, with the mode of the file that it
// replaces. Existing pipes and devices are written to, as in [File].
func (f *Folder) install(from, to string) error {
	there, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return visible(os.Rename(from, to), to)
	case err != nil:
		return err
	case there.Mode().IsRegular():
		return visible(errors.Join(os.Chmod(from, there.Mode().Perm()), os.Rename(from, to)), to)
	}
	staged, err := os.Open(from)
	if err != nil {
		return err
	}
	defer staged.Close()
	return WriteFile(f.ctx, to, func(w io.Writer) error {
		_, err := io.Copy(w, staged)
		return err
	})
}

// isRegular reports whether path is a regular file, not a symbolic link to one.
func isRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// Close removes the hidden folder and, without Commit, the folders that Open created.
func (f *Folder) Close() {
	if f.stage != "" {
		_ = os.RemoveAll(f.stage)
	}
	for i := len(f.created) - 1; i >= 0; i-- {
		_ = os.Remove(f.created[i]) // fails if it is not empty
	}
	f.created = nil
}
