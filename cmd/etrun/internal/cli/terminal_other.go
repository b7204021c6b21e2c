//go:build !linux

package cli

import "os"

// onTerminal takes any character device but the null device for a terminal.
func onTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}
