//go:build unix

package openfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	_ "github.com/etrun-go/etrun/internal/platform" // its message
)

// flags open without waiting and without taking over a terminal.
const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// nextData is where a file's data goes on behind a hole at a place; ok is false where the
// hole reaches up to the end.
func nextData(f *os.File, at int64) (next int64, ok bool) {
	data, err := f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return 0, false
	case err != nil: // the file system knows no holes
		return at, true
	}
	return data, true
}
