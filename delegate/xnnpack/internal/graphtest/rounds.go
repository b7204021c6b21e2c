package graphtest

import (
	"os"
	"strconv"
	"testing"
)

// Rounds returns the number of generated cases of a test: that of the variable ETRUN_CHAINS, or the usual one, with -short a
// quarter of it.
func Rounds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("ETRUN_CHAINS")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 4
	}
	return usual
}

// RaceDetector reports whether the build has the race detector.
var RaceDetector bool
