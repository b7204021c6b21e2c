package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/modelfile"
	"github.com/etrun-go/etrun/internal/openfile"
)

// foreign are the file formats that users pass by mistake, with their magic bytes.
var foreign = []struct {
	offset int
	magic  string
	name   string
	hint   string // empty: export with ExecuTorch
}{
	{4, "TFL3", "a TensorFlow Lite model", ""},
	{0, "GGUF", "a GGUF model", ""},
	{0, "PK\x03\x04", "a zip archive, as PyTorch's own .pt, .pth and .pt2 files are", ""},
	{0, "\x89HDF", "an HDF5 file, as Keras writes", ""},
	{0, "\x93NUMPY", "a NumPy array", "pass it with --input"},
	{0, "\x89PNG", "a PNG image", "pass it with --input"},
	{0, "\xff\xd8\xff", "a JPEG image", "pass it with --input"},
	{4, "ED00", "an ETDump", "read it with ExecuTorch's Inspector"},
	{0, "\x80\x02", "a Python pickle, as old PyTorch checkpoints are", ""},
	{0, "\x7fELF", "an ELF binary", ""},
	{0, "\x1f\x8b", "a gzip archive", "unpack it"},
	{0, "version https://git-lfs", "a Git LFS pointer", "fetch the file with git lfs pull"},
	{0, "<!doctype", "an HTML page", "download the file itself"},
	{0, "<!DOCTYPE", "an HTML page", "download the file itself"},
	{0, "<html", "an HTML page", "download the file itself"},
}

// foreignStart is the number of first bytes examined.
const foreignStart = 64

// foreignKind returns the format of a file that begins with start, empty if unknown.
func foreignKind(start []byte, size int64) (name, hint string) {
	for _, f := range foreign {
		if len(start) >= f.offset && bytes.HasPrefix(start[f.offset:], []byte(f.magic)) {
			return f.name, f.hint
		}
	}
	if isText(start) {
		return textFile, ""
	}
	if len(start) < 16 {
		return "", ""
	}
	if n := binary.LittleEndian.Uint64(start); start[8] == '{' && n > 0 && n < uint64(size) {
		return "a safetensors file", ""
	}
	if start[0] == 8 && start[1] < 32 && bytes.IndexByte([]byte{0x12, 0x1a, 0x3a}, start[2]) >= 0 { // version, then text or the graph
		return "an ONNX model", ""
	}
	return "", ""
}

// isText reports whether start is the beginning of a text in UTF-8. Its last character may be cut off.
func isText(start []byte) bool {
	for rest := start; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			return len(rest) < len(start) && len(start) == foreignStart && !utf8.FullRune(rest)
		}
		if r != '\n' && r != '\r' && r != '\t' && unicode.IsControl(r) {
			return false
		}
		rest = rest[n:]
	}
	return len(start) > 0
}

// foreignError is a file of another format than expected.
type foreignError struct {
	text string
	err  error
}

func (e *foreignError) Error() string { return e.text }

// Unwrap returns the error of reading the file as a program.
func (e *foreignError) Unwrap() error { return e.err }

// readForeign reads the beginning of a regular file.
func readForeign(ctx context.Context, path string) (name, hint string) {
	f, err := openfile.Open(ctx, path, openfile.Rules{})
	if err != nil {
		return "", ""
	}
	defer f.Close()
	start := make([]byte, foreignStart)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", ""
	}
	size, _ := f.Size()
	if name, hint = foreignKind(start[:n], size); name != textFile {
		return name, hint
	}
	rest, _ := io.ReadAll(io.LimitReader(f, textStart)) // its beginning is enough
	return cmp.Or(modelfile.Identify(append(start[:n], rest...)), name), hint
}

// textStart is the number of bytes after the first ones by which text files are distinguished.
const textStart = 1 << 18

const textFile = "a text file"
