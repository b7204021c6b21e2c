package output

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
)

// WriteFile writes a file that appears when it is complete, replacing what was there.
func WriteFile(path string, fill func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".etrun-*")
	if err != nil {
		return &Error{err}
	}
	defer os.Remove(file.Name())
	w := bufio.NewWriter(file)
	err = fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Chmod(0o644) // temporary files are private
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return &Error{err}
	}
	return nil
}
