//go:build linux

package xnnpack

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/campaign"
)

// envReplay is the path of a stored graph to run again, with the seed of campaign.EnvSeed.
const envReplay = "ETRUN_CAMPAIGN_REPLAY"

// mutantOf returns the mutated graph of a seed.
func (s *seeds) mutantOf(seed uint64) *graph.Graph {
	return mutate(s.pick(rand.New(rand.NewPCG(seed, 1))), rand.New(rand.NewPCG(seed, 2)))
}

// TestGraphs runs mutated graphs on both engines. On the native engine, all memory is between
// inaccessible pages. The seeds are the graphs of this package's tests, of the programs in testdata
// and of those in the folders of campaign.EnvCorpus.
//
// With envReplay it runs one stored graph and logs it.
func TestGraphs(t *testing.T) {
	if name := os.Getenv(envReplay); name != "" {
		runStored(t, name)
		return
	}
	newAttack(t)
	h := &hunt{distinct: make(map[string]bool)}
	c := &campaign.Campaign{Test: "TestGraphs", Usual: 400, Memory: attackLimit + attackSlack, Counters: attackCounters,
		Prepare: h.prepare, Start: startGraphs, Found: h.found}
	c.Run(t)
}

// startGraphs prepares a process and returns the function that runs a seed.
func startGraphs(t *testing.T, p *campaign.Process) func(seed uint64) error {
	pool, err := loadSeeds(filepath.Join(p.Folder, "seeds"))
	if err != nil {
		t.Fatal(err)
	}
	a := newAttack(t)
	a.count = p.Count
	return func(seed uint64) error {
		err := a.run(pool.mutantOf(seed), seed)
		if a.runtimes != 0 && err == nil {
			err = &campaign.Finding{Kind: "leak", Message: fmt.Sprint(a.runtimes, " runtimes are not deleted")}
		}
		return err
	}
}

// hunt reduces and stores a campaign's findings.
type hunt struct {
	pool     *seeds
	distinct map[string]bool // by kind, text and types of the nodes
}

func (h *hunt) prepare(t *testing.T, folder string) {
	h.pool = baseSeeds(t)
	for _, folder := range filepath.SplitList(os.Getenv(campaign.EnvCorpus)) {
		h.pool.addFolder(t, folder)
	}
	t.Logf("%d seed graphs", len(h.pool.payloads))
	if err := h.pool.save(filepath.Join(folder, "seeds")); err != nil {
		t.Fatal(err)
	}
}

func (h *hunt) found(t *testing.T, f *campaign.Finding, folder string) {
	t.Helper()
	text := campaign.General(f.Error())
	g := h.reduce(t, h.pool.mutantOf(f.Seed), f.Seed, text, folder)
	signature := text + " " + strings.Join(typesOf(g), " ")
	if h.distinct[signature] {
		return
	}
	h.distinct[signature] = true
	name := filepath.Join(folder, fmt.Sprintf("%s-%d.xnn", f.Kind, f.Seed))
	if err := os.WriteFile(name, graphtest.Encode(g), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("seed %d: %v\n%s\n%s", f.Seed, f, name, dump(g))
}

// reduce removes nodes as long as the smaller graph has the same finding.
func (h *hunt) reduce(t *testing.T, g *graph.Graph, seed uint64, text, folder string) *graph.Graph {
	for again := true; again; {
		again = false
		for i := len(g.Nodes) - 1; i >= 0 && len(g.Nodes) > 1; i-- {
			for _, smaller := range []*graph.Graph{without(g, i), bypassed(g, i)} {
				if len(smaller.Args) > smaller.Inputs && campaign.General(replay(t, smaller, seed, folder)) == text {
					g, again = smaller, true
					break
				}
			}
		}
	}
	return g
}

// without returns the graph without node i.
func without(g *graph.Graph, i int) *graph.Graph {
	chosen := make(map[int]bool)
	for k := range g.Nodes {
		chosen[k] = k != i
	}
	return partOf(g, chosen)
}

// bypassed returns the graph without node i; the readers of its output read its input.
func bypassed(g *graph.Graph, i int) *graph.Graph {
	c := cloneGraph(g)
	bypass(c, i)
	compact(c)
	return c
}

// replay runs one graph in its own process and returns its finding or crash, or "".
func replay(t *testing.T, g *graph.Graph, seed uint64, folder string) string {
	name := filepath.Join(folder, "candidate")
	if err := os.WriteFile(name, graphtest.Encode(g), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestGraphs$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), envReplay+"="+name, fmt.Sprintf("%s=%d", campaign.EnvSeed, seed))
	out, err := cmd.CombinedOutput()
	if _, text, ok := strings.Cut(string(out), "finding: "); ok {
		text, _, _ = strings.Cut(text, "\n")
		return text
	}
	if err != nil {
		return "crash: " + campaign.CrashOf(string(out))
	}
	return ""
}

func runStored(t *testing.T, name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graphtest.ReadGraph(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", dump(g))
	a := newAttack(t)
	if err := campaign.Cost(attackLimit+attackSlack, func() error { return a.run(g, campaign.Number(campaign.EnvSeed, 0)) }); err != nil {
		t.Fatalf("finding: %v", err)
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
