//go:build !unix

package output

import "os"

const notWaiting = 0

// duplicate cannot here: closing the result closes f, after which nothing is written.
func duplicate(f *os.File, _ string) (*os.File, error) { return f, nil }
