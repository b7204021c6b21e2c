// Package needs skips tests on machines without what they need. If the variable CI is set, such
// tests fail instead: machines of CI have all of it, by make deps.
package needs

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Tool returns the path of a program. Missing ends the test without it.
func Tool(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s (package %s; make deps installs it)", name, debianPackage)
	}
	return path
}

// Missing ends the test, because the machine lacks something that CI has.
func Missing(t testing.TB, what string, args ...any) {
	t.Helper()
	text := "missing: " + fmt.Sprintf(what, args...)
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}
