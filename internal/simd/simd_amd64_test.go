//go:build !purego

package simd

import (
	"os"
	"os/exec"
	"testing"
)

// TestLowerLevels runs all tests again at every instruction set below the machine's, in
// processes of their own.
func TestLowerLevels(t *testing.T) {
	if !vector {
		t.Skip("no vectors here, or a run at the lowest level")
	}
	levels := []struct{ want, features string }{{"avx2", "cpu.avx512f=off"}, {"avx2", "cpu.avx512f=off,cpu.avxvnni=off"}, {"go", "cpu.avx2=off"}}
	for _, l := range levels {
		t.Run(l.features, func(t *testing.T) {
			// TestGuard goes over the levels itself.
			args := []string{"-test.skip=^(TestLowerLevels|TestGuard)$", "-test.failfast"}
			if testing.Short() {
				args = append(args, "-test.short")
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), "GODEBUG="+l.features, envWantLevel+"="+l.want)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
