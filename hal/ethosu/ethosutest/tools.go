package ethosutest

import (
	"os/exec"
	"testing"
)

// MissingTool reports a test skipped because a program is not installed.
type MissingTool struct{ Name, Package string }

func (m MissingTool) Error() string {
	return "needs " + m.Name + " (Debian package " + m.Package + "; make deps installs it)"
}

// Tool returns the path of a program. If it is missing, the test is skipped.
func Tool(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(MissingTool{name, debianPackage})
	}
	return path
}
