package input

import (
	"bytes"
	"io"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/safetensors"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/media/picture"
	"github.com/etrun-go/etrun/media/sound"
)

// startBytes is the number of first bytes that identify a file format.
const startBytes = 16

// kindOf returns the kind of a file by its first bytes; ok is false if they are not
// conclusive, as for raw elements.
func kindOf(start []byte) (kind Source, ok bool) {
	has := func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) }
	switch {
	case has("\x93NUMPY"):
		return Array, true
	case has("PK\x03\x04"):
		return Archive, true
	case has("\x89PNG\r\n\x1a\n"), has("\xff\xd8\xff") && len(start) > 3 && start[3] >= 0xc0, has("GIF87a"), has("GIF89a"),
		has("RIFF") && len(start) >= 12 && string(start[8:12]) == "WEBP":
		return Picture, true
	case sound.IsStart(start):
		return Sound, true
	case safetensors.IsStart(start):
		return Tensors, true
	case looksLikeJSON(start):
		return JSON, true
	}
	return Raw, false
}

// looksLikeJSON reports whether start is the beginning of a list of numbers. Raw elements
// hardly ever match: every byte must be one of a few.
func looksLikeJSON(start []byte) bool {
	start = bytes.TrimLeft(start, " \t\r\n")
	if len(start) < 8 || start[0] != '[' {
		return false
	}
	for _, c := range start {
		if !bytes.ContainsRune([]byte("0123456789+-.eE[], \t\r\n"), rune(c)) {
			return false
		}
	}
	return true
}

// startChecks reject files whose first bytes do not match the extension.
var startChecks = map[Source]func([]byte) error{
	Array:   func(start []byte) error { return npy.CheckStart(start[:min(len(start), npy.StartBytes)]) },
	Archive: func(start []byte) error { return npy.CheckZipStart(start[:min(len(start), npy.StartBytes)]) },
	Picture: func(start []byte) error { return picture.CheckStart(start[:min(len(start), picture.StartBytes)]) },
}

// readAll reads a file to its end, at most limit bytes.
func readAll(f *openfile.File, path string, limit int64) ([]byte, error) {
	if size, regular := f.Size(); regular {
		if size > limit {
			return nil, &openfile.SizeError{Path: path, Size: size, Limit: limit}
		}
		return f.ReadAll(func(n int) []byte { return make([]byte, n) })
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &openfile.SizeError{Path: path, Size: int64(len(b)), Limit: limit}
	}
	return b, err
}

// readerAt returns a file with random access for archives; the bytes of a pipe are buffered.
func readerAt(f *openfile.File, path string, limit int64) (io.ReaderAt, int64, error) {
	if size, regular := f.Size(); regular {
		if size > limit {
			return nil, 0, &openfile.SizeError{Path: path, Size: size, Limit: limit}
		}
		return f, size, nil
	}
	b, err := readAll(f, path, limit)
	return bytes.NewReader(b), int64(len(b)), err
}
