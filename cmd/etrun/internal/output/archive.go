package output

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Archive collects outputs as NumPy arrays in logical order, in one .npz file that
// appears when it is complete. Numbers are arrays of rank 0; text and None have none.
// Close without Commit leaves everything as it was found.
type Archive struct {
	path   string
	file   *os.File // nil once it is closed
	writer *npy.ZipWriter
}

// Create begins the file under a hidden name beside path.
func Create(path string) (*Archive, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".etrun-*.npz")
	if err != nil {
		return nil, err
	}
	return &Archive{path, file, npy.NewZipWriter(file)}, nil
}

// Add writes the outputs of call k: out0, out1, … of call 0, call1_out0, … of call 1.
func (a *Archive) Add(k int, outputs []*tensor.Value) error {
	prefix := ""
	if k > 0 {
		prefix = fmt.Sprintf("call%d_", k)
	}
	for i, v := range outputs {
		if err := a.value(fmt.Sprintf("%sout%d", prefix, i), v); err != nil {
			return &Error{err}
		}
	}
	return nil
}

func (a *Archive) value(name string, v *tensor.Value) error {
	switch v.Kind {
	case tensor.KindTensor:
		return a.writer.Add(name, v.Tensor)
	case tensor.KindInt:
		return a.writer.Add(name, tensor.Of([]int64{v.Int}))
	case tensor.KindDouble:
		return a.writer.Add(name, tensor.Of([]float64{v.Double}))
	case tensor.KindBool:
		return a.writer.Add(name, tensor.Of([]bool{v.Bool}))
	}
	for i, item := range listItems(v) {
		if err := a.value(fmt.Sprintf("%s.%d", name, i), item); err != nil {
			return err
		}
	}
	return nil
}

// Commit puts the file in its place, replacing what was there.
func (a *Archive) Commit() error {
	err := a.writer.Close()
	if err == nil {
		err = a.file.Chmod(0o644) // temporary files are private
	}
	if e := a.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(a.file.Name(), a.path)
	}
	if err != nil {
		return &Error{err}
	}
	a.file = nil
	return nil
}

// Close removes the hidden file unless it was committed.
func (a *Archive) Close() {
	if a.file == nil {
		return
	}
	_ = a.file.Close()
	_ = os.Remove(a.file.Name())
	a.file = nil
}
