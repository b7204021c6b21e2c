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
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cmd/etrun/internal/machine"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/scripts"
	"github.com/spf13/cobra"
)

// machineReport describes what this machine supports.
type machineReport struct {
	Schema     string            `json:"schema"`
	Version    string            `json:"version"`
	CPU        string            `json:"cpu,omitempty"`
	Cores      []coresReport     `json:"cores,omitempty"` // of Arm
	Processors int               `json:"processors"`      // available to the process
	Quota      string            `json:"cgroup_quota,omitempty"`
	Threads    int               `json:"threads"` // default number of threads
	Features   []string          `json:"features"`
	Absent     []string          `json:"absent_features"`
	Operators  int               `json:"operators"`
	Backends   []machine.Backend `json:"backends"`
	NPUs       []npuReport       `json:"npus"`
	Isolation  []isolationReport `json:"isolation"` // of etrun serve --isolate
}

// coresReport are processors of one kind.
type coresReport struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	InOrder bool   `json:"in_order"` // executes instructions in the order of the program
}

// isolationReport is a layer that confines the processes of isolated models.
type isolationReport struct {
	Layer     string `json:"layer"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

// npuReport is the result of probing one Ethos-U driver.
type npuReport struct {
	Driver string   `json:"driver"`
	Doc    string   `json:"doc"`
	State  string   `json:"state"` // loaded, skipped or failed
	Reason string   `json:"reason"`
	Paths  []string `json:"paths,omitempty"` // device paths, for --device
	Hint   string   `json:"hint,omitempty"`  // how to make it work, if it does not
}

func newDoctor(a *app) *cobra.Command {
	fix := false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine supports and what is missing",
		Long: "Check what this machine supports, what is missing, and how to add it. With --fix, download libXNNPACK from the\n" +
			"machine's Debian archive into a folder of this user if it is missing. The system is not changed.",
		Example: "  etrun doctor\n  etrun doctor --fix\n  etrun doctor --json",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			r := examine()
			if fix {
				fixed, err := a.fix(c.Context(), r)
				if err != nil {
					return err
				}
				r = fixed
			}
			if a.JSON {
				return a.WriteJSON(r)
			}
			return r.print(a)
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "download libXNNPACK if it is missing")
	return c
}

func examine() *machineReport {
	r := &machineReport{Schema: "etrun.doctor/1", Version: version(), CPU: machine.Processor(), Processors: cpu.Allowed(),
		Quota: machine.Quota(), Threads: cpu.DefaultThreads(), Features: []string{}, Absent: []string{},
		Operators: len(etrun.DefaultOperators().Names()), Backends: []machine.Backend{}}
	for _, c := range cpu.AllCores() {
		r.Cores = append(r.Cores, coresReport(c))
	}
	for _, f := range cpu.Features() {
		if f.Has {
			r.Features = append(r.Features, f.Name)
		} else {
			r.Absent = append(r.Absent, f.Name)
		}
	}
	for _, b := range all.Backends() {
		s := b.Probe()
		r.Backends = append(r.Backends, machine.Backend{ID: b.ID(), Loaded: s.Loaded, Engine: s.Engine, Detail: s.Detail, Hint: hintOfBackend(b.ID(), s)})
	}
	for _, d := range ethosu.Drivers() {
		found := d.Probe()
		paths := slices.DeleteFunc(found.Paths, func(p string) bool { return p == "" })
		r.NPUs = append(r.NPUs, npuReport{d.Name, d.Doc, found.State.String(), found.Reason, paths, hintOfDriver(d.Name, found.State)})
	}
	for _, l := range sandbox.Available() {
		row := isolationReport{Layer: l.Name, Available: l.Err == nil}
		if l.Err != nil {
			row.Reason = l.Err.Error()
		}
		r.Isolation = append(r.Isolation, row)
	}
	return r
}

func (r *machineReport) print(a *app) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "version\t%s\n", r.Version)
	fmt.Fprintf(t, "processor\t%s\n", cmp.Or(r.CPU, "–"))
	if list := cpu.AllCores(); len(list) > 0 {
		fmt.Fprintf(t, "cores\t%s\n", cpu.DescribeCores(list))
	}
	fmt.Fprintf(t, "threads\t%d by default (%d processors available, cgroup quota %s)\n", r.Threads, r.Processors, cmp.Or(r.Quota, "–"))
	fmt.Fprintf(t, "features\t%s\n", cmp.Or(strings.Join(r.Features, " "), "–"))
	fmt.Fprintf(t, "without\t%s\n", cmp.Or(strings.Join(r.Absent, " "), "–"))
	fmt.Fprintf(t, "operators\t%d\n", r.Operators)
	for _, b := range r.Backends {
		state := "not loaded"
		if b.Loaded {
			state = "loaded, " + b.Engine + " engine"
		}
		fmt.Fprintf(t, "%s\t%s: %s\n", b.ID, state, b.Detail)
		printHint(t, b.Hint)
	}
	if len(r.Backends) == 0 {
		fmt.Fprintf(t, "backends\tnone in this build\n")
	}
	for _, d := range r.NPUs {
		fmt.Fprintf(t, "--device %s\t%s: %s\n", d.Driver, d.State, d.Reason)
		printHint(t, d.Hint)
	}
	var layers []string
	for _, l := range r.Isolation {
		state := l.Layer
		if !l.Available {
			state = "no " + l.Layer + ": " + l.Reason
		}
		layers = append(layers, state)
	}
	fmt.Fprintf(t, "isolation\t%s\n", strings.Join(layers, ", "))
	return t.Flush()
}

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
