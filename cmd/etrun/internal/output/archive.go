package output

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Archive collects outputs as NumPy arrays in logical order, in one .npz file. Numbers are
// arrays of rank 0; text and None are omitted. Close without Commit does not change an
// existing regular file.
type Archive struct {
	file   *File
	writer *npy.ZipWriter
}

// CreateArchive creates the file, see [CreateFile].
func CreateArchive(ctx context.Context, path string) (*Archive, error) {
	file, err := CreateFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Archive{file, npy.NewZipWriter(file)}, nil
}

// Add writes the outputs of call k: out0, out1, … of call 0, call1_out0, … of call 1.
func (a *Archive) Add(k int, outputs []*tensor.Value) error {
	for i, v := range outputs {
		if err := a.value(ArrayName(k, i), v); err != nil {
			return &Error{err}
		}
	}
	return nil
}

// ArrayName returns the name of output i of call k in an archive.
func ArrayName(k, i int) string {
	if k > 0 {
		return fmt.Sprintf("call%d_out%d", k, i)
	}
	return fmt.Sprintf("out%d", i)
}

func (a *Archive) value(name string, v *tensor.Value) error {
	if t := AsTensor(v); t != nil {
		return a.writer.Add(name, t)
	}
	for i, item := range listItems(v) {
		if err := a.value(fmt.Sprintf("%s.%d", name, i), item); err != nil {
			return err
		}
	}
	return nil
}

// Commit completes the file.
func (a *Archive) Commit() error {
	err := a.writer.Close()
	if err == nil {
		err = a.file.Commit()
	}
	if err != nil {
		return &Error{err}
	}
	return nil
}

// Close removes an uncommitted file.
func (a *Archive) Close() { a.file.Close() }

// AsTensor returns a tensor, or a number as a tensor of rank 0; nil for other values.
func AsTensor(v *tensor.Value) *tensor.Tensor {
	switch v.Kind {
	case tensor.KindTensor:
		return v.Tensor
	case tensor.KindInt:
		return tensor.Of([]int64{v.Int})
	case tensor.KindDouble:
		return tensor.Of([]float64{v.Double})
	case tensor.KindBool:
		return tensor.Of([]bool{v.Bool})
	}
	return nil
}
