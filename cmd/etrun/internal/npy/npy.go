// Package npy reads and writes NumPy's array files: .npy, one array, and .npz, a
// ZIP of them. Arrays come out in logical (C) order and little-endian whatever the
// file holds, so a caller sees one form only. Nothing is allocated that the file's
// own bytes do not back, and never more than the caller's limit.
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
	Name  string // in a .npz: the member's name without ".npy"
	DType tensor.DType
	Void  bool // raw elements of no stated type (descr "|V2", as bfloat16 is saved), as wide as DType
	Sizes []int
	Data  []byte // logical order, little-endian
}

// Holds reports whether the array's elements are, or as raw bytes can be, of type d.
func (a *Array) Holds(d tensor.DType) bool {
	if a.Void {
		return a.DType.Size() == d.Size()
	}
	return a.DType == d
}

// TypeName is the element type for people.
func (a *Array) TypeName() string {
	if a.Void {
		return fmt.Sprintf("raw %d-byte elements", a.DType.Size())
	}
	return a.DType.String()
}

// Errors of reading; match with errors.Is.
var (
	ErrFormat      = errors.New("malformed npy")   // the bytes break the format
	ErrUnsupported = errors.New("unsupported npy") // well formed, but not an array of plain numbers
	ErrLimit       = errors.New("array too large") // more bytes than the caller allows
)

const magic = "\x93NUMPY"

// StartBytes is how many first bytes of a file CheckStart and CheckZipStart look at.
const StartBytes = len(magic)

// CheckStart refuses what is no .npy file by its first bytes.
func CheckStart(start []byte) error {
	if string(start) != magic {
		return fmt.Errorf("%w: first bytes %q, want %q", ErrFormat, start, magic)
	}
	return nil
}

// UnknownSize stands for the size of a file that has none, such as a pipe.
const UnknownSize = -1

// maxHeader bounds the textual header; NumPy itself refuses more than 10000 bytes
// unless told to trust the file.
const maxHeader = 1 << 16

// Read reads one .npy file of size bytes, or of UnknownSize. Its elements, and the copy
// that sorting them takes, are at most limit bytes. Bytes after the array are left unread.
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
		return nil, fmt.Errorf("%w: sizes %v of %s, %d times in memory, at most %d bytes", ErrLimit, a.Sizes, a.TypeName(), copies, limit)
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

// readN reads exactly n bytes, which the left bytes of the file must back. Where nobody
// knows how many are left, negative, it allocates as they come: a length that nothing
// backs costs nothing. The result is aligned for any element.
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

// reverseBytes reverses each unit of width bytes in place; 0 and 1 leave b as it is.
func reverseBytes(b []byte, width int) {
	if width < 2 {
		return
	}
	for ; len(b) >= width; b = b[width:] {
		slices.Reverse(b[:width])
	}
}

// fromFortran turns first-dimension-fastest order into C order.
func fromFortran(src []byte, sizes []int, d tensor.DType) []byte {
	order := make([]uint8, len(sizes))
	for i := range order {
		order[i] = uint8(len(sizes) - 1 - i)
	}
	t := tensor.Make(d, sizes, order, tensor.Static)
	t.Bind(src)
	return Logical(t)
}

// Logical is t's bytes in logical order: t's own bytes if they are so already.
func Logical(t *tensor.Tensor) []byte {
	if t.IsContiguous() {
		return t.Data
	}
	c := tensor.New(t.DType, t.Sizes...)
	tensor.CopyLayout(c, t)
	return c.Data
}
