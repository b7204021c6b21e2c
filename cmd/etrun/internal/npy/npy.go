// Package npy reads and writes NumPy's array files: .npy, one array, and .npz, a ZIP of
// them. Arrays are always returned in logical (C) order and little-endian. Allocations are
// bounded by the size of the file and by the caller's limit.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Array is one array of a file.
type Array struct {
	Name  string // in a .npz: name of the member without ".npy"
	DType tensor.DType
	Void  bool // raw elements of no stated type (descr "|V2", as bfloat16 is saved), as wide as DType
	Sizes []int
	Data  []byte // logical order, little-endian
}

// HasType reports whether the elements have type d, or are raw elements of its width.
func (a *Array) HasType(d tensor.DType) bool {
	if a.Void {
		return a.DType.Size() == d.Size()
	}
	return a.DType == d
}

// TypeName is the human-readable element type.
func (a *Array) TypeName() string {
	if a.Void {
		return fmt.Sprintf("raw %d-byte elements", a.DType.Size())
	}
	return a.DType.String()
}

// Classes of errors; match with errors.Is.
var (
	ErrFormat      = errors.New("malformed npy")   // invalid format
	ErrUnsupported = errors.New("unsupported npy") // well formed, but not an array of plain numbers
	ErrLimit       = errors.New("array too large") // more bytes than the caller allows
)

const magic = "\x93NUMPY"

// StartBytes is the number of first bytes that CheckStart and CheckZipStart need.
const StartBytes = len(magic)

// CheckStart returns an error if start is not the beginning of a .npy file.
func CheckStart(start []byte) error {
	if string(start) != magic {
		return fmt.Errorf("%w: first bytes %q, want %q", ErrFormat, start, magic)
	}
	return nil
}

// UnknownSize is the size of a file without a size, such as a pipe.
const UnknownSize = -1

// maxHeader is the maximum size of the textual header; NumPy itself rejects more than 10000
// bytes of untrusted files.
const maxHeader = 1 << 16

// Read reads one .npy file of size bytes, or of UnknownSize. Its elements, and a copy for
// reordering, have at most limit bytes. Bytes after the array are not read.
func Read(r io.Reader, size, limit int64) (*Array, error) {
	text, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, err
	}
	a, swap, err := h.array()
	if err != nil {
		return nil, err
	}
	n, ok := tensor.Product(a.Sizes)
	elem, copies := a.DType.Size(), 1
	if h.fortran {
		copies = 2
	}
	if !ok || int64(n) > limit/int64(elem*copies) {
		return nil, fmt.Errorf("%w: sizes %v of %s, %d copies, want at most %d bytes", ErrLimit, a.Sizes, a.TypeName(), copies, limit)
	}
	if a.Data, err = readN(r, n*elem, size-int64(len(text))); err != nil {
		return nil, fmt.Errorf("%w: elements of %s%v: %w", ErrFormat, a.TypeName(), a.Sizes, err)
	}
	reverseBytes(a.Data, swap)
	if h.fortran {
		a.Data = fromFortran(a.Data, a.Sizes, a.DType)
	}
	return a, nil
}

func readHeader(r io.Reader) (string, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:8]); err != nil {
		return "", fmt.Errorf("%w: the first 8 bytes: %w", ErrFormat, err)
	}
	if err := CheckStart(head[:len(magic)]); err != nil {
		return "", err
	}
	width := 4
	switch head[6] {
	case 1:
		width = 2
	case 2, 3:
	default:
		return "", fmt.Errorf("%w: version %d.%d", ErrUnsupported, head[6], head[7])
	}
	if _, err := io.ReadFull(r, head[8:8+width]); err != nil {
		return "", fmt.Errorf("%w: header length: %w", ErrFormat, err)
	}
	n := binary.LittleEndian.Uint32(head[8:])
	if n > maxHeader {
		return "", fmt.Errorf("%w: header of %d bytes, at most %d", ErrFormat, n, maxHeader)
	}
	text, err := readN(r, int(n), UnknownSize)
	if err != nil {
		return "", fmt.Errorf("%w: header of %d bytes: %w", ErrFormat, n, err)
	}
	return string(text), nil
}

// readN reads exactly n bytes; left is the rest of the file. If left is unknown (negative),
// it allocates as bytes arrive, so that a wrong length costs nothing. The result is aligned
// for any element.
func readN(r io.Reader, n int, left int64) ([]byte, error) {
	const first, backing = 1 << 20, 8
	if left >= 0 && int64(n) > left {
		return nil, fmt.Errorf("%d of %d bytes: %w", left, n, io.ErrUnexpectedEOF)
	}
	size := n
	if left < 0 {
		size = min(n, first)
	}
	buf := tensor.AlignedBytes(size)
	for have := 0; ; {
		got, err := io.ReadFull(r, buf[have:])
		have += got
		switch {
		case have == n:
			return buf, nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil, fmt.Errorf("%d of %d bytes: %w", have, n, io.ErrUnexpectedEOF)
		case err != nil:
			return nil, err
		}
		grown := tensor.AlignedBytes(min(n, backing*len(buf)))
		copy(grown, buf)
		buf = grown
	}
}

// reverseBytes reverses each unit of width bytes in place; width 0 and 1 change nothing.
func reverseBytes(b []byte, width int) {
	if width < 2 {
		return
	}
	for ; len(b) >= width; b = b[width:] {
		slices.Reverse(b[:width])
	}
}

// fromFortran converts Fortran order to C order.
func fromFortran(src []byte, sizes []int, d tensor.DType) []byte {
	order := make([]uint8, len(sizes))
	for i := range order {
		order[i] = uint8(len(sizes) - 1 - i)
	}
	t := tensor.Make(d, sizes, order, tensor.Static)
	t.Bind(src)
	return t.Logical()
}
