//go:build unix

package openfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	_ "github.com/etrun-go/etrun/internal/platform" // prints its message
)

// flags avoid blocking, and becoming the controlling terminal.
const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// nextData returns the offset of the first data at or after at, skipping a hole; ok is false if the
// hole extends to the end.
func nextData(f *os.File, at int64) (next int64, ok bool) {
	data, err := f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return 0, false
	case err != nil: // the file system does not report holes
		return at, true
	}
	return data, true
}
