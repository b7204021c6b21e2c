package openfile

import (
	"errors"
	"io"
	"os"
)

// Scratch is a file without a name, which no other process changes: it may be mapped. It needs space until it is closed.
type Scratch struct {
	*os.File
	named bool // the system cannot remove a file that is open
}

// NewScratch creates an empty one in a folder.
func NewScratch(folder string) (*Scratch, error) {
	f, err := os.CreateTemp(folder, ".etrun-*")
	if err != nil {
		return nil, err
	}
	return &Scratch{f, os.Remove(f.Name()) != nil}, nil
}

// Close deletes the file.
func (s *Scratch) Close() error {
	err := s.File.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}

// WriteTo writes all of the file, until the context ends. If it changes meanwhile, the error is ErrChanged.
func (f *File) WriteTo(w io.Writer) (n int64, err error) {
	n, err = io.CopyBuffer(w, struct{ io.Reader }{f}, make([]byte, part))
	size, regular := f.Size()
	if err != nil || !regular {
		return n, err
	}
	info, err := f.file.Stat()
	if err == nil && (n != size || info.Size() != size || !info.ModTime().Equal(f.info.ModTime())) {
		err = f.fault("read", ErrChanged)
	}
	return n, err
}
