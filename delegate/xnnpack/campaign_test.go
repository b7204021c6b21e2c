//go:build linux

package xnnpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The campaign's environment. Without it a few hundred graphs run.
const (
	envGraphs   = "ETRUN_ATTACK_GRAPHS"   // how many
	envSeed     = "ETRUN_ATTACK_SEED"     // the first one's seed
	envSeconds  = "ETRUN_ATTACK_SECONDS"  // end after so many
	envCorpus   = "ETRUN_ATTACK_CORPUS"   // folders of programs, as in PATH
	envFindings = "ETRUN_ATTACK_FINDINGS" // folder for the graphs that did harm
	envReplay   = "ETRUN_ATTACK_REPLAY"   // a file of that folder, to run again
	envChild    = "ETRUN_ATTACK_CHILD"    // set by the campaign: the folder of its files
)

func envNumber(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// mutantOf is the graph of a seed.
func (s *seeds) mutantOf(seed uint64) *Graph {
	return mutate(s.pick(rand.New(rand.NewPCG(seed, 1))), rand.New(rand.NewPCG(seed, 2)))
}

// campaign runs mutants in processes of their own, one after the other: a process that
// a graph ended is followed by another, from the next graph on.
type campaign struct {
	t         *testing.T
	folder    string
	state     progress
	figures   attackFigures
	found     map[string]int // findings by their kind and text
	distinct  map[string]bool
	deadline  time.Time
	processes int
}

// TestAttackGraphs runs mutants of the package's graphs on both engines, natively
// between guard pages.
func TestAttackGraphs(t *testing.T) {
	newAttack(t)
	c := &campaign{t: t, folder: os.Getenv(envFindings), found: make(map[string]int), distinct: make(map[string]bool)}
	if c.folder == "" {
		c.folder = t.TempDir()
	} else if err := os.MkdirAll(c.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	c.deadline = time.Now().Add(time.Duration(envNumber(envSeconds, 1<<30)) * time.Second)
	pool := baseSeeds(t)
	for _, folder := range filepath.SplitList(os.Getenv(envCorpus)) {
		pool.addFolder(t, folder)
	}
	if err := pool.save(c.file("seeds")); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d seeds", len(pool.payloads))
	begun := time.Now()
	first, count := envNumber(envSeed, 1), envNumber(envGraphs, 400)
	for seed := first; seed < first+count && time.Now().Before(c.deadline); {
		seed = c.child(pool, seed, first+count)
	}
	t.Logf("%+v, %d processes, %v", c.figures, c.processes, time.Since(begun).Round(time.Second))
	for text, n := range c.found {
		t.Logf("%d times: %s", n, text)
	}
}

func (c *campaign) file(name string) string { return filepath.Join(c.folder, name) }

// child runs the graphs from a seed on in a process, and gives the seed to go on from.
func (c *campaign) child(pool *seeds, from, to uint64) (next uint64) {
	c.t.Helper()
	c.processes++
	c.state = openProgress(c.t, c.file("state"))
	c.state.setSeed(from)
	os.Remove(c.file("list"))
	cmd := exec.Command(os.Args[0], "-test.run=^TestAttackChild$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), envChild+"="+c.folder, envSeed+"="+fmt.Sprint(from), envGraphs+"="+fmt.Sprint(to-from))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	hung, ended := c.watch(cmd)
	next = c.state.seed()
	c.figures.add(c.state.figures())
	c.state.close()
	for _, f := range readList(c.file("list")) {
		c.report(pool, f.Seed, f.Kind, f.Message)
	}
	switch {
	case ended == nil:
		return next
	case hung == "deadline":
		return to
	case hung != "":
		c.report(pool, next, "time", hung)
	default:
		c.report(pool, next, "crash", crashOf(output.String()))
	}
	return next + 1
}

// watch waits for a process, and ends it where it makes no progress or is out of time.
func (c *campaign) watch(cmd *exec.Cmd) (hung string, ended error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	last, since := c.state.seed(), time.Now()
	for {
		select {
		case err := <-done:
			return hung, err
		case <-time.After(time.Second):
		}
		if now := c.state.seed(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > 3*attackTime {
			hung = "no end in sight"
			cmd.Process.Kill()
		}
		if time.Now().After(c.deadline) {
			hung = "deadline"
			cmd.Process.Kill()
		}
	}
}

var digits = regexp.MustCompile(`0x[0-9a-f]+|[-+]?[0-9][0-9.e+-]*|NaN|[-+]Inf`)

// general is a text without its figures.
func general(text string) string { return digits.ReplaceAllString(text, "#") }

// report counts a finding, and reduces and stores the first few of their kind.
func (c *campaign) report(pool *seeds, seed uint64, kind, message string) {
	text := general(kind + ": " + message)
	if c.found[text]++; c.found[text] > 12 {
		return
	}
	g := c.reduce(pool.mutantOf(seed), seed, text)
	signature := text + " " + strings.Join(typesOf(g), " ")
	if c.distinct[signature] {
		return
	}
	c.distinct[signature] = true
	name := c.file(fmt.Sprintf("%s-%d.xnn", kind, seed))
	if err := os.WriteFile(name, encode(g), 0o644); err != nil {
		c.t.Fatal(err)
	}
	again := c.replay(g, seed)
	c.t.Errorf("%s (seed %d): %s\n%s\n%s", kind, seed, again, name, dump(g))
}

// reduce takes nodes out as long as what is left does the same harm.
func (c *campaign) reduce(g *Graph, seed uint64, text string) *Graph {
	for again := true; again; {
		again = false
		for i := len(g.Nodes) - 1; i >= 0 && len(g.Nodes) > 1; i-- {
			chosen := make(map[int]bool)
			for k := range g.Nodes {
				chosen[k] = k != i
			}
			bypassed := g.clone()
			bypassed.bypass(i)
			bypassed.compact()
			for _, smaller := range []*Graph{g.part(chosen), bypassed} {
				if len(smaller.Args) > smaller.Inputs && general(c.replay(smaller, seed)) == text {
					g, again = smaller, true
					break
				}
			}
		}
	}
	return g
}

// replay runs one graph in a process, and says what it did.
func (c *campaign) replay(g *Graph, seed uint64) string {
	name := c.file("candidate")
	if err := os.WriteFile(name, encode(g), 0o644); err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAttackReplay$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), envReplay+"="+name, envSeed+"="+fmt.Sprint(seed))
	out, err := cmd.CombinedOutput()
	if _, text, ok := strings.Cut(string(out), "finding: "); ok {
		text, _, _ = strings.Cut(text, "\n")
		return text
	}
	if err != nil {
		return "crash: " + crashOf(string(out))
	}
	return ""
}

// crashOf is what a process said at its end, in short.
func crashOf(output string) string {
	function := ""
	for line := range strings.Lines(output) {
		if at := strings.Index(line, "Assertion"); at >= 0 || strings.HasPrefix(line, "guard: ") {
			return strings.TrimSpace(line[max(at, 0):])
		}
		if name := regexp.MustCompile(`call_xnn_\w+|/\w+\.[\w.()*]+\(`).FindString(line); name != "" && function == "" {
			function = name
		}
	}
	for _, cause := range []string{"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "unexpected fault address", "leaking pinned pointer", "out of memory", "panic: "} {
		if strings.Contains(output, cause) {
			_, rest, _ := strings.Cut(output, cause)
			rest, _, _ = strings.Cut(rest, "\n")
			return cause + rest + " in " + function
		}
	}
	return strings.TrimSpace(output[max(0, len(output)-300):])
}

// TestAttackReplay runs one stored graph again, and says what it is.
func TestAttackReplay(t *testing.T) {
	name := os.Getenv(envReplay)
	if name == "" {
		t.Skip("runs the graph of " + envReplay)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := readGraph(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", dump(g))
	a := newAttack(t)
	seed := envNumber(envSeed, 0)
	if seed == 0 {
		fmt.Sscanf(filepath.Base(name), "%*[a-z]-%d", &seed)
	}
	if err := a.run(g, seed); err != nil {
		t.Fatalf("finding: %v", err)
	}
}

// listed is a finding of a process that went on.
type listed struct {
	Seed          uint64
	Kind, Message string
}

func readList(name string) (list []listed) {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var x listed
		if json.Unmarshal(s.Bytes(), &x) == nil {
			list = append(list, x)
		}
	}
	return list
}

// TestAttackChild is a process of a campaign.
func TestAttackChild(t *testing.T) {
	folder := os.Getenv(envChild)
	if folder == "" {
		t.Skip("a process of TestAttackGraphs")
	}
	pool, err := loadSeeds(filepath.Join(folder, "seeds"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.OpenFile(filepath.Join(folder, "list"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	state := openProgress(t, filepath.Join(folder, "state"))
	a := newAttack(t)
	from := envNumber(envSeed, 0)
	for seed := from; seed < from+envNumber(envGraphs, 0); seed++ {
		state.setSeed(seed)
		if err := a.run(pool.mutantOf(seed), seed); err != nil {
			f, ok := err.(*finding)
			if !ok {
				t.Fatal(err)
			}
			line, _ := json.Marshal(listed{seed, f.Kind, f.Message})
			list.Write(append(line, '\n'))
		}
		state.setFigures(&a.figures)
		if seed%2048 == 0 {
			wantNothingLeft(t)
		}
	}
	state.setSeed(from + envNumber(envGraphs, 0))
}

// wantNothingLeft ends the process where closed images leave something: goroutines,
// memory, or pins, which the garbage collector reports.
func wantNothingLeft(t *testing.T) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if n := runtime.NumGoroutine(); n > 10 || m.HeapAlloc > 400<<20 {
		t.Fatalf("%d goroutines, %d bytes of heap are left", n, m.HeapAlloc)
	}
	if n := len(packed.by); n != 0 {
		t.Fatalf("%d packed blocks are left", n)
	}
}

func (s *seeds) save(name string) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s.payloads); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

func loadSeeds(name string) (*seeds, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := new(seeds)
	return s, gob.NewDecoder(bytes.NewReader(data)).Decode(&s.payloads)
}

// progress is memory that a process shares with the campaign, and outlives it: the
// seed and the figures.
type progress []byte

func openProgress(t testing.TB, name string) progress {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p progress) close()           { clear(p); unix.Munmap(p) }
func (p progress) seed() uint64     { return binary.LittleEndian.Uint64(p) }
func (p progress) setSeed(n uint64) { binary.LittleEndian.PutUint64(p, n) }

func (f *attackFigures) fields() []*int {
	return []*int{&f.Graphs, &f.Refused, &f.Large, &f.NotNative, &f.Native, &f.Runs, &f.Outputs, &f.Proven}
}

func (f *attackFigures) add(g attackFigures) {
	for i, n := range g.fields() {
		*f.fields()[i] += *n
	}
}

func (p progress) setFigures(f *attackFigures) {
	for i, n := range f.fields() {
		binary.LittleEndian.PutUint64(p[8*(i+1):], uint64(*n))
	}
}

func (p progress) figures() (f attackFigures) {
	for i, n := range f.fields() {
		*n = int(binary.LittleEndian.Uint64(p[8*(i+1):]))
	}
	return f
}
