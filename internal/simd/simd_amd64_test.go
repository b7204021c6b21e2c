//go:build !purego

package simd

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/etrun-go/etrun/internal/cases"
)

// TestLowerLevels runs all tests again at every instruction set below the machine's, in
// processes of their own.
func TestLowerLevels(t *testing.T) {
	if !vector || os.Getenv(envWantLevel) != "" {
		t.Skip("no vectors here, or a run at a lower level")
	}
	levels := []struct {
		want, features string
		there          bool // without the feature, the level before is the same
	}{{"avx2", "cpu.avx512f=off", avx512}, {"avx2", "cpu.avx512f=off,cpu.avxvnni=off", avxVNNI}, {"go", "cpu.avx2=off", true}}
	for _, l := range levels {
		if !l.there {
			continue
		}
		t.Run(l.features, func(t *testing.T) {
			// TestGuard goes over the levels itself.
			cmd := exec.Command(os.Args[0], "-test.skip=^TestGuard$", "-test.failfast", fmt.Sprintf("-test.short=%v", !cases.All()))
			cmd.Env = append(os.Environ(), "GODEBUG="+l.features, envWantLevel+"="+l.want)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
