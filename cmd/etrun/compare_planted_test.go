//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// constantUse is a constant of a file with the places that read it.
type constantUse struct {
	lo, hi int // bytes of the file
	dtype  tensor.DType
	places []layers.Place
}

// constantUses lists the constants that a run with the inputs of a seed reads, at load or
// later, in instructions and in nodes of XNNPACK delegates.
func constantUses(t *testing.T, name string, file []byte, seed uint64) []*constantUse {
	uses := make(map[[2]int]*constantUse)
	see := func(e *trace.Event) {
		for i := range e.Values {
			v := e.Values[i].Tensor
			if e.Values[i].Kind != tensor.KindTensor || !v.Const || len(v.Data) < 16 {
				continue
			}
			lo := bytes.Index(file, v.Data)
			if lo < 0 || bytes.Contains(file[lo+1:], v.Data) { // no constant, or one that cannot be told from others
				continue
			}
			key := [2]int{lo, lo + len(v.Data)}
			if uses[key] == nil {
				uses[key] = &constantUse{lo: lo, hi: key[1], dtype: v.DType}
			}
			p := layers.Place{Method: e.Method, Chain: e.Chain, Instruction: e.Instruction, Delegate: e.Delegate, Node: e.Index}
			uses[key].places = append(uses[key].places, p)
		}
	}
	o := &session.Options{Seed: seed, Say: func(string, ...any) {}}
	o.ShowValues()
	p, err := session.Open(t.Context(), name, o, etrun.WithObserver(trace.Func{Kinds: 1 << trace.Read, Do: see}))
	if err != nil {
		return nil
	}
	defer p.Close()
	if p.Prepare(t.Context(), session.Calls{{}}) != nil || p.Once(t.Context(), nil) != nil {
		return nil
	}
	var list []*constantUse
	for _, u := range uses {
		if u.dtype == tensor.Float32 || u.dtype == tensor.Float16 || u.dtype == tensor.Int8 {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *constantUse) int { return cmp.Or(a.lo-b.lo, a.hi-b.hi) })
	return list
}

// corrupt randomly changes some elements of a constant: one, or about half of them.
func (u *constantUse) corrupt(r *rand.Rand, file []byte) {
	data, size := file[u.lo:u.hi], u.dtype.Size()
	n := len(data) / size
	change := func(i int) {
		at := data[i*size : (i+1)*size]
		if u.dtype != tensor.Float32 {
			at[size-1] ^= byte(1 << (3 + r.IntN(3)))
			return
		}
		x := math.Float32frombits(uint32(at[0]) | uint32(at[1])<<8 | uint32(at[2])<<16 | uint32(at[3])<<24)
		x += (1 + float32(math.Abs(float64(x)))) * (0.5 + r.Float32())
		bits := math.Float32bits(x)
		at[0], at[1], at[2], at[3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
	}
	if r.IntN(2) == 0 {
		change(r.IntN(n))
		return
	}
	for i := range n {
		if r.IntN(2) == 0 {
			change(i)
		}
	}
}

// comparedFiles runs compare --layer, and returns its report unless it failed.
func comparedFiles(t *testing.T, a, b string, seed uint64) (*comparedReport, int, string) {
	t.Helper()
	var out, notes bytes.Buffer
	code := run([]string{"compare", a, b, "--layer", "--json", "--quiet", "--seed", fmt.Sprint(seed)}, strings.NewReader(""), &out, &notes)
	r := &comparedReport{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatalf("%s: exit code %d, %v in %s%s", a, code, err, out.String(), notes.String())
	}
	return r, code, notes.String()
}

// TestPlantedLayers changes a random constant in random programs; compare --layer must report an
// instruction or node that reads it, and nothing in unchanged programs. ETRUN_CAMPAIGN_RUNS
// sets the number of runs, ETRUN_CAMPAIGN_CORPUS adds programs.
func TestPlantedLayers(t *testing.T) {
	files := plantedPrograms(t)
	runs, first := uint64(24), uint64(1)
	for name, to := range map[string]*uint64{campaign.EnvRuns: &runs, campaign.EnvSeed: &first} {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			*to = n
		}
	}
	found, beyond, nodes, silent, refused := uint64(0), 0, 0, 0, 0
	for seed := first; found < runs && seed < first+10*runs; seed++ {
		r := rand.New(rand.NewPCG(seed, 15))
		name := files[r.IntN(len(files))]
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		uses := constantUses(t, name, file, seed)
		if len(uses) == 0 {
			continue
		}
		u := uses[r.IntN(len(uses))]
		changed := filepath.Join(t.TempDir(), "changed.pte")
		copied := slices.Clone(file)
		u.corrupt(r, copied)
		write(t, changed, copied)
		report, _, notes := comparedFiles(t, name, changed, seed)
		switch {
		case report.Layer == nil:
			refused++
			t.Logf("seed %d, %s: %s", seed, name, notes)
			continue
		case report.Layer.Unequal == nil: // no result depends on it, such as a row of a table that was not asked for
			silent++
			continue
		}
		found++
		p := report.Layer.Unequal.Place
		p.Call, p.Operator, p.Backend, p.NodeName, p.Layer = 0, "", "", "", ""
		var want []layers.Place // a row of a table is found in the file, too
		for _, other := range uses {
			if other.lo < u.hi && u.lo < other.hi {
				want = append(want, other.places...)
			}
		}
		if !slices.Contains(want, p) {
			t.Errorf("seed %d, %s: bytes %d to %d, %v: found %v, want one of %v", seed, name, u.lo, u.hi, u.dtype, &report.Layer.Unequal.Place, want)
		}
		if p.Node >= 0 {
			nodes++
		}
		if report.Layer.First != nil && report.Layer.First.Place == report.Layer.Unequal.Place {
			beyond++
		}
		write(t, changed, file)
		var code int
		if report, code, notes = comparedFiles(t, name, changed, seed); code != 0 || report.Layer.Unequal != nil || report.Layer.Compared == 0 {
			t.Errorf("seed %d, %s untouched: exit code %d, %+v %s", seed, name, code, report.Layer, notes)
		}
	}
	t.Logf("%d of %d planted layers found, %d of them nodes inside delegates, %d the first beyond the tolerance too; "+
		"%d changes had no effect, %d programs were refused", found, runs, nodes, beyond, silent, refused)
	if found < runs {
		t.Errorf("%d planted layers, want %d", found, runs)
	}
}

// plantedPrograms returns the test data's programs and the campaign's corpus.
func plantedPrograms(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"../../testdata/digits/*.pte", "../../testdata/pte/*.pte"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		list = append(list, names...)
	}
	list = slices.DeleteFunc(list, func(name string) bool { return strings.HasSuffix(name, "external_weights.pte") })
	for _, name := range campaign.Corpus(".pte") {
		if info, err := os.Stat(name); err == nil && info.Size() < 8<<20 {
			list = append(list, name)
		}
	}
	return list
}
