package ethosutest

import (
	"os/exec"
	"testing"
)

// MissingTool is why a test was skipped: a program that is not on this machine.
type MissingTool struct{ Name, Package string }

func (m MissingTool) Error() string {
	return "needs " + m.Name + " (Debian package " + m.Package + "; make deps installs it)"
}

// Tool is the path of a program. Where it is missing the test is skipped.
func Tool(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(MissingTool{name, debianPackage})
	}
	return path
}
