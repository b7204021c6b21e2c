package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/daemon"
	"github.com/etrun-go/etrun/internal/needs"
)

// The command lines of the deployment files have valid flags of serve.
func TestDeployFlags(t *testing.T) {
	flag := regexp.MustCompile(`--([a-z][a-z-]+)`)
	for _, name := range []string{"etrun.service", "Containerfile", "kserve.yaml", "kubernetes.yaml"} {
		found := 0
		for line := range strings.Lines(readText(t, "deploy", name)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, m := range flag.FindAllStringSubmatch(line, -1) {
				if found++; newServe(&app{}).Flags().Lookup(m[1]) == nil {
					t.Errorf("%s: no flag --%s", name, m[1])
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no flags", name)
		}
	}
	if d := daemon.Defaults().Drain.Seconds(); d > 25 {
		t.Errorf("systemd gives 30 s to end, draining takes %v", d)
	}
}

// The unit restricts the server: systemd's exposure score, where less is better.
func TestUnitExposure(t *testing.T) {
	analyze := needs.Tool(t, "systemd-analyze", "systemd")
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=15", filepath.Join(root, "deploy", "etrun.service")).CombinedOutput()
	if err != nil {
		t.Errorf("%v: above 1.5:\n%s", err, out)
	}
}

// The units have no line that systemd ignores. Version 252 of Debian 12 is the oldest one supported.
func TestUnitsVerify(t *testing.T) {
	analyze := needs.Tool(t, "systemd-analyze", "systemd")
	folder := t.TempDir()
	for _, name := range []string{"etrun.service", "etrun.socket"} {
		text := strings.ReplaceAll(readText(t, "deploy", name), "/usr/bin/etrun", "/bin/true") // etrun is not installed here
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"etrun.service", "etrun.socket"} {
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", filepath.Join(folder, name)).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
