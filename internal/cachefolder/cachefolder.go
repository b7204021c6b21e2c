// Package cachefolder stores files that later processes trust.
//
// The folder and its files must belong to this process's user or to root, and must not be writable
// by others. In a folder with the sticky bit, such as /tmp, others may add files but not change
// ours.
package cachefolder

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"

	"github.com/etrun-go/etrun/internal/openfile"
)

// OthersWrite are the permissions that a folder and its files must not grant to others, see
// [openfile.CheckOwner].
const OthersWrite = 0o022

// open opens a folder, creating it if it does not exist.
func open(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := check(folder); err != nil {
		folder.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return folder, nil
}

func check(folder *os.Root) error {
	info, err := folder.Stat(".")
	if err != nil {
		return err
	}
	forbidden := fs.FileMode(OthersWrite)
	if info.Mode()&fs.ModeSticky != 0 {
		forbidden = 0
	}
	return openfile.CheckOwner(info, forbidden)
}

// Replace writes or replaces a file atomically. Its contents are parts, one after the other.
func Replace(folder *os.Root, name string, parts ...[]byte) error {
	return write(folder, 0o644, parts, func(hidden string) error { return folder.Rename(hidden, name) })
}

// write writes a file under a temporary name; place renames it.
func write(folder *os.Root, mode fs.FileMode, parts [][]byte, place func(hidden string) error) error {
	hidden := ".etrun-" + rand.Text()
	f, err := folder.OpenFile(hidden, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer folder.Remove(hidden)
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return place(hidden)
}
