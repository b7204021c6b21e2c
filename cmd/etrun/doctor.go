package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/machine"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/internal/sandbox"
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
	Hint   string   `json:"cure,omitempty"`  // how to make it work, if it does not
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
