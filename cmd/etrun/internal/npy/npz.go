package npy

import (
	"archive/zip"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Limits of an archive.
const (
	maxMembers   = 4096
	maxDirectory = 4 << 20 // bytes read to list the members
	maxInflation = 1032    // maximum expansion of DEFLATE
	slack        = 64 << 10
)

// MaxZip is the maximum size of a file with arrays of limit bytes.
func MaxZip(limit int64) int64 { return largest(limit) + maxDirectory }

// largest is the maximum compressed size of n bytes.
func largest(n int64) int64 { return n + n/1024 + slack }

// CheckZipStart returns an error if start is not the beginning of a .npz file.
func CheckZipStart(start []byte) error {
	for _, magic := range []string{"PK\x03\x04", "PK\x05\x06"} { // a member, an empty archive
		if strings.HasPrefix(string(start), magic) {
			return nil
		}
	}
	return fmt.Errorf("%w: first bytes %q, want a ZIP archive", ErrFormat, start)
}

// ReadZip reads every array of a .npz file of size bytes, in the archive's order. The
// arrays have at most limit bytes in total.
func ReadZip(r io.ReaderAt, size, limit int64) ([]*Array, error) {
	directory := &bounded{r: r, left: maxDirectory}
	archive, err := zip.NewReader(directory, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(archive.File) > maxMembers {
		return nil, fmt.Errorf("%w: %d members, at most %d", ErrLimit, len(archive.File), maxMembers)
	}
	directory.left = math.MaxInt64
	if err := checkPlaces(archive.File, size); err != nil {
		return nil, err
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

// bounded limits the number of bytes read.
type bounded struct {
	r    io.ReaderAt
	left int64
}

func (b *bounded) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fmt.Errorf("%w: a directory of more than %d bytes", ErrLimit, maxDirectory)
	}
	return b.r.ReadAt(p, at)
}

// checkPlaces rejects members outside the file, and members that share bytes: a few bytes
// would be read many times.
func checkPlaces(members []*zip.File, size int64) error {
	type place struct {
		start, end int64
		name       string
	}
	places := make([]*place, len(members))
	for i, m := range members {
		start, err := m.DataOffset()
		if err != nil {
			return fmt.Errorf("%w: member %q: %w", ErrFormat, m.Name, err)
		}
		stored, whole := m.CompressedSize64, m.UncompressedSize64
		if stored > uint64(max(size-start, 0)) || int64(stored) > largest(int64(min(whole, 1<<60))) {
			return fmt.Errorf("%w: member %q: %d bytes, compressed to %d at byte %d of a file of %d", ErrFormat, m.Name, whole, stored, start, size)
		}
		places[i] = &place{start, start + int64(stored), m.Name}
	}
	slices.SortFunc(places, func(a, b *place) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(places); i++ {
		if a, b := places[i-1], places[i]; b.start <= a.end {
			return fmt.Errorf("%w: members %q and %q overlap", ErrFormat, a.name, b.name)
		}
	}
	return nil
}

func readMember(member *zip.File, limit int64) (*Array, error) {
	name, ok := strings.CutSuffix(member.Name, ".npy")
	if !ok {
		return nil, fmt.Errorf("%w: no .npy file", ErrUnsupported)
	}
	size := min(member.UncompressedSize64, member.CompressedSize64*maxInflation)
	r, err := member.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer r.Close()
	a, err := Read(r, int64(size), limit)
	if err != nil {
		return nil, err
	}
	// The archive verifies a member's checksum only at its end.
	if n, err := io.Copy(io.Discard, io.LimitReader(r, 1)); err != nil || n != 0 {
		return nil, fmt.Errorf("%w: bytes after the array, or a wrong checksum", ErrFormat)
	}
	a.Name = name
	return a, nil
}

// Write writes t as a .npy file, in logical order. Types without a NumPy equivalent
// (bfloat16, float8, …) are written as raw elements of their width.
func Write(w io.Writer, t *tensor.Tensor) error {
	shape := strings.TrimSuffix(strings.ReplaceAll(fmt.Sprint(t.Sizes), " ", ", "), "]")[1:]
	if t.Rank() == 1 {
		shape += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr(t.DType), shape)
	// The elements start at a multiple of 64 bytes, after a newline.
	text += strings.Repeat(" ", 63-(len(magic)+4+len(text))%64) + "\n"
	head := append([]byte(magic), 1, 0, byte(len(text)), byte(len(text)>>8))
	if _, err := w.Write(append(head, text...)); err != nil {
		return err
	}
	_, err := w.Write(t.Logical())
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

// A ZipWriter writes a .npz file with uncompressed members.
type ZipWriter struct{ archive *zip.Writer }

// NewZipWriter starts a file.
func NewZipWriter(w io.Writer) *ZipWriter { return &ZipWriter{zip.NewWriter(w)} }

// Add writes t as the array name.
func (z *ZipWriter) Add(name string, t *tensor.Tensor) error {
	member, err := z.archive.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	return Write(member, t)
}

// Close completes the file; it does not close the underlying writer.
func (z *ZipWriter) Close() error { return z.archive.Close() }
