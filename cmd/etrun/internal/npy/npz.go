package npy

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxMembers bounds the arrays of one archive.
const maxMembers = 4096

// ReadZip reads every array of a .npz file of size bytes, in the archive's order.
// limit bounds the bytes of all elements together.
func ReadZip(r io.ReaderAt, size, limit int64) ([]*Array, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(archive.File) > maxMembers {
		return nil, fmt.Errorf("%w: %d members, at most %d", ErrLimit, len(archive.File), maxMembers)
	}
	arrays := make([]*Array, 0, len(archive.File))
	for _, member := range archive.File {
		a, err := readMember(member, limit)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", member.Name, err)
		}
		limit -= int64(len(a.Data))
		arrays = append(arrays, a)
	}
	return arrays, nil
}

func readMember(member *zip.File, limit int64) (*Array, error) {
	name, ok := strings.CutSuffix(member.Name, ".npy")
	if !ok {
		return nil, fmt.Errorf("%w: no .npy file", ErrUnsupported)
	}
	r, err := member.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer r.Close()
	a, err := Read(r, limit)
	if err != nil {
		return nil, err
	}
	// The archive checks a member's sum at its end only.
	if n, err := io.Copy(io.Discard, io.LimitReader(r, 1)); err != nil || n != 0 {
		return nil, fmt.Errorf("%w: bytes after the array, or a wrong check sum", ErrFormat)
	}
	a.Name = name
	return a, nil
}

// Write writes t as a .npy file, in logical order. Types that NumPy does not know
// (bfloat16, float8, …) are written as raw elements of their width.
func Write(w io.Writer, t *tensor.Tensor) error {
	shape := strings.TrimSuffix(strings.ReplaceAll(fmt.Sprint(t.Sizes), " ", ", "), "]")[1:]
	if t.Rank() == 1 {
		shape += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr(t.DType), shape)
	// The elements start at a multiple of 64 bytes, and a line end closes the header.
	text += strings.Repeat(" ", 63-(len(magic)+4+len(text))%64) + "\n"
	head := append([]byte(magic), 1, 0, byte(len(text)), byte(len(text)>>8))
	if _, err := w.Write(append(head, text...)); err != nil {
		return err
	}
	_, err := w.Write(Logical(t))
	return err
}

func descr(d tensor.DType) string {
	for name, dtype := range letters {
		if dtype != d {
			continue
		}
		if d.Size() == 1 {
			return "|" + name
		}
		return "<" + name
	}
	return fmt.Sprintf("|V%d", d.Size())
}

// A ZipWriter writes a .npz file, its members stored uncompressed.
type ZipWriter struct{ archive *zip.Writer }

// NewZipWriter begins a file.
func NewZipWriter(w io.Writer) *ZipWriter { return &ZipWriter{zip.NewWriter(w)} }

// Add writes t as the array called name.
func (z *ZipWriter) Add(name string, t *tensor.Tensor) error {
	member, err := z.archive.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	return Write(member, t)
}

// Close ends the file; it does not close the writer below.
func (z *ZipWriter) Close() error { return z.archive.Close() }
