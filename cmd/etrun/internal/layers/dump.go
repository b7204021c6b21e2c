package layers

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Dump is an observer that writes all values to NumPy arrays in logical order: to one file
// each in a folder, or to one archive.
type Dump struct {
	ctx     context.Context
	folder  string
	archive *output.Archive // nil for a folder
	tracker
	err error
}

// newDump creates the output: a folder, or an archive if the name ends in .npz.
func newDump(ctx context.Context, place string) (*Dump, error) {
	d := &Dump{ctx: ctx, folder: place}
	if strings.HasSuffix(place, ".npz") || place == output.Stdout {
		var err error
		d.archive, err = output.CreateArchive(ctx, place)
		return d, err
	}
	return d, os.MkdirAll(place, 0o777)
}

// Wants selects written values and the beginnings of calls.
func (d *Dump) Wants() trace.Kinds { return 1<<trace.Written | 1<<trace.Begin }

// Observe writes values.
func (d *Dump) Observe(e *trace.Event) {
	if e.Kind == trace.Begin {
		d.begin()
		return
	}
	for k := range e.Values {
		w := d.written(e, k)
		if d.err == nil && e.Chain >= 0 {
			d.err = d.save(&w)
		}
	}
}

func (d *Dump) save(w *Written) error {
	if d.archive != nil {
		return d.archive.Put(w.FileName(), w.Value)
	}
	t := output.AsTensor(w.Value)
	if t == nil {
		return nil
	}
	return output.WriteFile(d.ctx, filepath.Join(d.folder, w.FileName()+".npy"), func(to io.Writer) error { return npy.Write(to, t) })
}

// Commit completes the archive, and returns the first error.
func (d *Dump) Commit() error {
	if d.err == nil && d.archive != nil {
		d.err = d.archive.Commit()
	}
	return d.err
}

// Close removes an uncommitted archive.
func (d *Dump) Close() {
	if d.archive != nil {
		d.archive.Close()
	}
}
