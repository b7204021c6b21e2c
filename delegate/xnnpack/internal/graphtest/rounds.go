package graphtest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
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

// IsFault reports whether an error of the native engine is that the library computes a graph wrongly on this processor.
func IsFault(err error) bool {
	return errors.Is(err, delegate.ErrUnsupported) && strings.Contains(err.Error(), "wrongly on this processor")
}
