//go:build linux

// Package campaign runs a test function for many seeds in separate processes: if a seed ends its
// process, by a signal or an assertion in C, another process continues with the next seed. It is
// for tests.
package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/cases"
)

// Environment variables. Without them a test runs its usual number of seeds.
const (
	EnvRuns     = "ETRUN_CAMPAIGN_RUNS"     // number of seeds
	EnvSeed     = "ETRUN_CAMPAIGN_SEED"     // first seed, default 1
	EnvSeconds  = "ETRUN_CAMPAIGN_SECONDS"  // time limit in seconds
	EnvCorpus   = "ETRUN_CAMPAIGN_CORPUS"   // folders with more files, separated as in PATH
	EnvFindings = "ETRUN_CAMPAIGN_FINDINGS" // folder for results
	envProcess  = "ETRUN_CAMPAIGN_PROCESS"  // set for child processes: the folder
)

// MaxTime is the maximum CPU time of a seed.
const MaxTime = 20 * time.Second

// Finding is a failure found by a seed.
type Finding struct {
	Seed          uint64
	Kind, Message string // "crash", "time", "memory", or defined by the test
}

func (f *Finding) Error() string { return f.Kind + ": " + f.Message }

var figures = regexp.MustCompile(`0x[0-9a-f]+|[-+]?[0-9][0-9.e+-]*|NaN|[-+]Inf`)

// General replaces the numbers in a message, so that similar findings are equal.
func General(text string) string { return figures.ReplaceAllString(text, "#") }

// Campaign is a test over many seeds.
type Campaign struct {
	Test     string   // the name of the test that calls Run
	Usual    uint64   // default number of seeds
	Memory   uint64   // maximum growth of resident memory per seed, in bytes
	Counters []string // names of the counters of Process.Count
	// Prepare, if not nil, is called once, before the first process. Folder is for its files and
	// those of the processes.
	Prepare func(t *testing.T, folder string)
	// Start is called in every process and returns the function that runs a seed. An error of that
	// function is a finding.
	Start func(t *testing.T, p *Process) func(seed uint64) error
	// Found, if not nil, is called for findings that are not similar to 12 earlier ones, instead of
	// reporting them.
	Found func(t *testing.T, f *Finding, folder string)
}

// Run runs the campaign, or in a child process its seeds.
func (c *Campaign) Run(t *testing.T) {
	t.Helper()
	if folder := os.Getenv(envProcess); folder != "" {
		c.process(t, folder)
		return
	}
	r := &run{Campaign: c, t: t, folder: os.Getenv(EnvFindings), found: make(map[string]int), counts: make([]uint64, len(c.Counters))}
	if r.folder == "" {
		r.folder = t.TempDir()
	} else if err := os.MkdirAll(r.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if c.Prepare != nil {
		c.Prepare(t, r.folder)
	}
	begun := time.Now()
	r.deadline = begun.Add(time.Duration(Number(EnvSeconds, 1<<30)) * time.Second)
	first, count := Number(EnvSeed, 1), Number(EnvRuns, c.usual())
	for seed := first; seed < first+count && time.Now().Before(r.deadline); {
		seed = r.one(seed, first+count)
	}
	var text []string
	for i, name := range c.Counters {
		text = append(text, fmt.Sprintf("%d %s", r.counts[i], name))
	}
	t.Logf("%s; %d processes, %v", strings.Join(text, ", "), r.processes, time.Since(begun).Round(time.Second))
	for text, n := range r.found {
		t.Logf("%d times: %s", n, text)
	}
}

// usual returns the number of seeds without the variable: a third of more than 100, unless all cases run.
func (c *Campaign) usual() uint64 {
	if c.Usual <= 100 {
		return c.Usual
	}
	return uint64(cases.Of(int(c.Usual/3), int(c.Usual)))
}

// Number returns a number from the environment, otherwise if it is not set.
func Number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// Corpus lists the files with one of the extensions below the folders in EnvCorpus.
func Corpus(extensions ...string) (files []string) {
	for _, folder := range filepath.SplitList(os.Getenv(EnvCorpus)) {
		filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() && slices.Contains(extensions, filepath.Ext(path)) {
				files = append(files, path)
			}
			return nil
		})
	}
	return files
}

// run is the state of a campaign.
type run struct {
	*Campaign
	t         *testing.T
	folder    string
	state     progress
	counts    []uint64
	found     map[string]int
	deadline  time.Time
	processes int
}

// one runs the seeds starting at from in a child process and returns the seed to continue with.
func (r *run) one(from, to uint64) (next uint64) {
	r.t.Helper()
	r.processes++
	r.state = openProgress(r.t, r.folder)
	r.state.set(0, from)
	os.Remove(filepath.Join(r.folder, "list"))
	cmd := exec.Command(os.Args[0], "-test.run=^"+r.Test+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), envProcess+"="+r.folder, fmt.Sprintf("%s=%d", EnvSeed, from), fmt.Sprintf("%s=%d", EnvRuns, to-from))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	why, ended := r.watch(cmd)
	next = r.state.get(0)
	for i := range r.counts {
		r.counts[i] += r.state.get(1 + i)
	}
	r.state.close()
	for _, f := range readList(r.folder) {
		r.report(f)
	}
	switch {
	case ended == nil:
		return to
	case why == "deadline":
		return to
	case why != "":
		r.report(&Finding{next, "time", why})
	default:
		r.report(&Finding{next, "crash", CrashOf(output.String())})
	}
	return next + 1
}

// watch waits for a process and kills it if it makes no progress or exceeds the time limit.
func (r *run) watch(cmd *exec.Cmd) (why string, ended error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	last, since := r.state.get(0), time.Now()
	for {
		select {
		case err := <-done:
			return why, err
		case <-time.After(500 * time.Millisecond):
		}
		if now := r.state.get(0); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > 6*MaxTime {
			why = "no end in sight"
		} else if time.Now().After(r.deadline) {
			why = "deadline"
		}
		if why != "" {
			cmd.Process.Kill()
		}
	}
}

func (r *run) report(f *Finding) {
	r.t.Helper()
	text := General(f.Error())
	if r.found[text]++; r.found[text] > 12 {
		return
	}
	if r.Found != nil {
		r.Found(r.t, f, r.folder)
	} else {
		r.t.Errorf("seed %d: %v", f.Seed, f)
	}
}

var function = regexp.MustCompile(`call_xnn_\w+|/\w+\.[\w.()*]+\(`)

// CrashOf summarizes a process's last output.
func CrashOf(output string) string {
	in := ""
	for line := range strings.Lines(output) {
		if at := strings.Index(line, "Assertion"); at >= 0 || strings.HasPrefix(line, "guard: ") {
			return strings.TrimSpace(line[max(at, 0):])
		}
		if name := function.FindString(line); name != "" && in == "" {
			in = name
		}
	}
	for _, cause := range []string{"panic: ", "leaking pinned pointer", "SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "unexpected fault address",
		"out of memory", "fatal error: ", "found unexpected goroutines"} {
		if _, rest, ok := strings.Cut(output, cause); ok {
			rest, _, _ = strings.Cut(rest, "\n")
			return cause + rest + " in " + in
		}
	}
	return strings.TrimSpace(output[max(0, len(output)-500):])
}

func readList(folder string) (list []*Finding) {
	data, _ := os.ReadFile(filepath.Join(folder, "list"))
	for line := range bytes.Lines(data) {
		f := new(Finding)
		if json.Unmarshal(line, f) == nil {
			list = append(list, f)
		}
	}
	return list
}
