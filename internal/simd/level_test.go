package simd

import (
	"os"
	"testing"
)

// envWantLevel is the level that a run of the tests is for.
const envWantLevel = "ETRUN_WANT_LEVEL"

// TestLevel fails where a run that asked for a lower instruction set has another one.
func TestLevel(t *testing.T) {
	if want := os.Getenv(envWantLevel); want != "" && Level() != want {
		t.Errorf("the level is %s, want %s", Level(), want)
	}
	if vector != (Level() != "go") {
		t.Errorf("vector loops %v at level %s", vector, Level())
	}
}
