package main

import (
	"io"
	"os"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// stored is a program, or its constants, in a file without a name, which is mapped: it needs no memory that the system could not use
// for something else.
type stored struct {
	file  *openfile.Scratch
	pages *cpu.Mapping // nil for no bytes
}

// store writes what a command reads, and what it makes, to such a file, in the folder of its output if that is possible.
func store(to string, from io.WriterTo) (s *stored, err error) {
	s = &stored{}
	if s.file, err = openfile.NewScratch(output.Beside(to)); err != nil {
		if s.file, err = openfile.NewScratch(os.TempDir()); err != nil {
			return nil, err
		}
	}
	n, err := from.WriteTo(s.file)
	if err == nil && n > 0 {
		if s.pages, err = cpu.MapFile(s.file.File, n); err == nil {
			s.pages.Forgettable()
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// data are the bytes, valid until close. They are read-only.
func (s *stored) data() []byte {
	if s.pages == nil {
		return nil
	}
	return s.pages.Bytes()
}

// release makes the memory of the bytes available to others until they are read again, and that of programs which were opened from
// such files.
func (s *stored) release() { cpu.Forget() }

// WriteTo implements io.WriterTo.
func (s *stored) WriteTo(w io.Writer) (int64, error) {
	defer s.release()
	return tree.Pieces{s.data()}.WriteTo(w)
}

// source opens the file under a name in messages.
func (s *stored) source(name string) etrun.Source {
	return etrun.ReaderAt(name, s.file, int64(len(s.data())))
}

// close deletes the file. It may be called twice, and for none.
func (s *stored) close() {
	if s == nil || s.file == nil {
		return
	}
	if s.pages != nil {
		s.pages.Close()
	}
	_ = s.file.Close() // nothing is read from it any more
	s.file = nil
}
