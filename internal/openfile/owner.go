package openfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckOwner returns an error unless the file belongs to this process's user or root, and has none
// of the forbidden permissions by which others could read or change it.
func CheckOwner(info fs.FileInfo, forbidden fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: owner unknown", info.Name())
	}
	if user := os.Geteuid(); stat.Uid != 0 && int(stat.Uid) != user {
		return fmt.Errorf("%s: belongs to user %d, want %d or root", info.Name(), stat.Uid, user)
	}
	if mode := info.Mode().Perm(); mode&forbidden != 0 {
		return fmt.Errorf("%s: mode %#o gives others %#o; chmod %#o makes it private", info.Name(), mode, mode&forbidden, mode&^forbidden)
	}
	return nil
}
