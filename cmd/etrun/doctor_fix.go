package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/scripts"
)

const staticBuild = "this build cannot open libXNNPACK; builds for Linux on amd64 and arm64 without the tag nodl can; " + advice.GoEngine

// hintOfBackend returns advice for a backend without its best engine.
func hintOfBackend(id string, s delegate.Status) string {
	if id != xnnpack.ID || s.Engine == string(xnnpack.EngineNative) {
		return ""
	}
	if !xnn.DynamicLoading {
		return staticBuild
	}
	if xnn.Named("") {
		return fmt.Sprintf("%s is set to a path without libXNNPACK: unset it, or install the library there", xnn.EnvPath)
	}
	return advice.GoEngine + "; " + advice.Library.Command()
}

// hints are the instructions that make NPU drivers work.
var hints = map[string]string{
	"drm": "on a board with an Ethos-U65 or U85: use a kernel with CONFIG_DRM_ACCEL_ARM_ETHOSU, " +
		"and get read and write access to /dev/accel/accel0",
	"arm": "on a board with Arm's driver stack: load the module ethosu, and get read and write access to /dev/ethosu0",
	"fvp": "Arm's Corstone models are free of charge: install one, and pass its folder with --fvp",
}

func hintOfDriver(name string, state ethosu.State) string {
	if state == ethosu.Loaded {
		return ""
	}
	return hints[name]
}

// printHint writes advice below its line.
func printHint(w io.Writer, hint string) {
	if hint != "" {
		fmt.Fprintf(w, "\t  %s\n", hint)
	}
}

// retargetCommand is the hidden command that the script runs.
const retargetCommand = "__retarget"

// fix downloads what is missing and examines the machine again.
func (a *app) fix(ctx context.Context, r *machineReport) (*machineReport, error) {
	for _, b := range r.Backends {
		if b.ID == xnnpack.ID && b.Hint == "" {
			a.Note("nothing to fix: libXNNPACK is loaded")
			return r, nil
		}
	}
	if !xnn.DynamicLoading {
		return nil, errors.New(staticBuild)
	}
	if xnn.Named("") {
		return nil, session.Usage("%s is set; unset it first", xnn.EnvPath)
	}
	dir := xnn.UserFolder()
	if dir == "" {
		return nil, errors.New("no home directory for libXNNPACK: set HOME")
	}
	if err := a.fetch(ctx, dir); err != nil {
		return nil, err
	}
	a.Note("libXNNPACK is in %s", dir)
	xnn.Forget()
	return examine(), nil
}

// fetch runs the script that installs the library into a folder.
func (a *app) fetch(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if strings.ContainsAny(self, " \t") {
		return fmt.Errorf("%s: the path contains spaces; use scripts/deps.sh in the source tree instead", self)
	}
	a.Progress.Say("downloading libXNNPACK")
	var said bytes.Buffer
	c := exec.CommandContext(ctx, "sh")
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(scripts.Deps), &said, &said
	c.Env = append(os.Environ(), "ETRUN_LIB="+filepath.Clean(dir), "ETRUN_RETARGET="+self+" "+retargetCommand)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second // its children may keep the output open
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text := strings.ReplaceAll("\n"+said.String(), "\ndeps: ", "\n")
		return fmt.Errorf("libXNNPACK cannot be installed: %s", cmp.Or(strings.TrimSpace(text), err.Error()))
	}
	return nil
}
