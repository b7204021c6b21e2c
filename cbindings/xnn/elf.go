//go:build !nodl && linux && (amd64 || arm64)

package xnn

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"math"
)

// sonameOf returns the DT_SONAME of a shared library. It reads only that name of the table of
// strings, which is long.
func sonameOf(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	at, err := f.DynValue(elf.DT_SONAME)
	if err != nil {
		return "", err
	}
	dynamic := f.SectionByType(elf.SHT_DYNAMIC)
	if len(at) != 1 || at[0] > math.MaxInt32 || dynamic == nil || uint64(dynamic.Link) >= uint64(len(f.Sections)) {
		return "", errors.New("no soname")
	}
	var text [64]byte
	n, err := f.Sections[dynamic.Link].ReadAt(text[:], int64(at[0]))
	if err != nil && err != io.EOF {
		return "", err
	}
	name, _, ok := bytes.Cut(text[:n], []byte{0})
	if !ok {
		return "", errors.New("no soname of an XNNPACK")
	}
	return string(name), nil
}
