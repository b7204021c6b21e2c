//go:build linux

package integration

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// lowerFile lowers a program with the Go engine's backend.
func lowerFile(data []byte, all bool, external bool) (*compile.Result, error) {
	return lowerFileFor(xnnpack.Backend{Engine: xnnpack.EngineGo}, data, all, external)
}

// lowerFileFor does that with a backend.
func lowerFileFor(by xnnpack.Backend, data []byte, all bool, external bool) (*compile.Result, error) {
	return compile.Lower(context.Background(), data, compile.Options{Backends: map[string]delegate.Backend{by.ID(): by},
		Writers: []lowering.Writer{xnnpack.Writer{Backend: by}}, Operators: etrun.DefaultOperators(), All: all, Planned: math.MaxInt32, External: external})
}

// Constants in data files are as large as those of a program may be: the limits are those of all files.
func TestLowerDataFiles(t *testing.T) {
	data, err := os.ReadFile("../../testdata/pte/external_weights.pte")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	wide := map[int]int{2: 1, 3: 5120, 4: 4096}
	named := make(map[string][]byte)
	for v := range spec.Methods[0].Values {
		if x := spec.Methods[0].Values[v].Tensor; x != nil {
			for i, n := range x.Sizes {
				x.Sizes[i] = wide[n]
			}
			if x.Storage == pte.External {
				named[x.Name] = make([]byte, x.NBytes())
			}
		}
	}
	spec.Methods[0].Arenas[0].Size = 1 << 28
	find := func(key string) ([]byte, bool) { b, ok := named[key]; return b, ok }
	result, err := compile.Lower(context.Background(), ptetest.Write(spec, ptetest.Layout{}), compile.Options{
		Writers: []lowering.Writer{xnnpack.Writer{}}, Operators: etrun.DefaultOperators(), Named: find, FileBytes: 4 * 4096 * 5120, All: true,
		Planned: math.MaxInt32, External: true})
	if err != nil || !result.Lowered() || result.External.Size() < 4*4096*5120 {
		t.Errorf("%v: got %+v", err, result.Methods)
	}
}

// filePair is a program, and the same one lowered to a file.
type filePair struct {
	path          string
	all           bool // regions are lowered whatever their work is
	external      bool // constants are in a file of their own
	from          []byte
	result        *compile.Result
	regions       int
	before, after int64
	near          int // runs with close outputs
	merged        int // delegates of the program that are parts of others
}

// TestLoweredFiles lowers programs of the exporter, and of a campaign's corpus, to files, and runs these without lowering. Their
// outputs are the bytes that lowering at load computes, on the same engine.
func TestLoweredFiles(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*.pte")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []filePair{{all: true}, {}, {all: true, external: true}} {
		regions, least := 0, 10
		if !p.all {
			least = 1 // the programs of testdata are small, and without vector loops they gain less
		}
		for _, path := range append(files, campaign.Corpus(".pte")...) {
			one := p
			one.path = path
			regions += one.test(t)
		}
		if regions < least {
			t.Errorf("%d regions, all of them %v: the test shows nothing", regions, p.all)
		}
	}
}

// TestMergedDelegatesInFiles lowers programs whose delegates are merged.
func TestMergedDelegatesInFiles(t *testing.T) {
	archive, err := zip.OpenReader("../../testdata/lowering/delegates.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, external := range []bool{false, true} {
		merged := 0
		for _, f := range archive.File {
			data, err := fs.ReadFile(archive, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			p := &filePair{path: f.Name, all: true, external: external}
			p.check(t, data)
			merged += p.merged
		}
		if merged < 20 {
			t.Errorf("%d delegates were merged: the test shows little", merged)
		}
	}
}

// test returns the number of regions of a program's methods.
func (p *filePair) test(t *testing.T) (regions int) {
	t.Helper()
	data, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	return p.check(t, data)
}

// check lowers a program to a file, and returns the number of regions.
func (p *filePair) check(t *testing.T, data []byte) (regions int) {
	t.Helper()
	path, err := p.path, error(nil)
	if _, err := pte.Parse(data, pte.Limits{}); err != nil {
		return 0
	}
	p.from = data
	if p.result, err = lowerFile(data, p.all, p.external); err != nil {
		t.Errorf("%s: %v", path, err)
		return 0
	}
	if err := p.compare(); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if !p.result.Lowered() {
		return 0
	}
	for _, fault := range compiletest.Check(data, p.result.Data.Bytes(), p.beside()...) {
		t.Errorf("%s: %s", path, fault)
	}
	if err := p.grows(); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	t.Logf("%s: %d regions, all of them %v, %d to %d bytes (%.3f), planned %d to %d, %d runs close", path, p.regions, p.all, len(data),
		p.result.Data.Size(), float64(p.result.Data.Size())/float64(len(data)), p.before, p.after, p.near)
	return p.regions
}

// beside returns the data files of the result.
func (p *filePair) beside() (list [][]byte) {
	if p.result.External != nil {
		list = append(list, p.result.External.Bytes())
	}
	return list
}

// grows returns an error if the file of a program whose regions gain time has more than 2 % more bytes. Payloads have filters of
// convolutions of halves as floats, as those of exporters.
func (p *filePair) grows() error {
	spec, err := pte.Parse(p.from, pte.Limits{})
	if err != nil || p.all {
		return err
	}
	most := int64(len(p.from)) * 102 / 100
	for i := range spec.Methods {
		for v := range spec.Methods[i].Values {
			if t := spec.Methods[i].Values[v].Tensor; t != nil && t.Storage == pte.Constant && t.DType == tensor.Float16 {
				most += t.NBytes()
			}
		}
	}
	if n := int64(p.result.Data.Size()); n > most {
		return fmt.Errorf("the file has %d bytes, of %d before, want at most %d", n, len(p.from), most)
	}
	return nil
}

// planned returns an error if a method needs more planned memory than before, beyond what is alive at once and the bytes behind
// it that XNNPACK may read. A delegate's arguments are alive at once; an operator may write its result over an operand's last bytes.
func (p *filePair) planned(i int, m *etrun.Method) error {
	const behind, align = 64, 16
	before, after := p.result.Methods[i].Before, p.result.Methods[i].After
	p.before, p.after = p.before+before, p.after+after
	made := plan.Make(m.Report().Plan.Method, nil, nil, plan.Options{Mode: plan.Own})
	alive := made.LowerBound + made.StateBytes + align*int64(len(m.Report().Plan.Method.Storages))
	if most := max(before, alive) + behind*int64(len(m.Report().Plan.Method.Arenas)); after > most {
		return fmt.Errorf("%d bytes of planned memory, %d before, %d are alive at once", after, before, alive)
	}
	return nil
}

// lowering returns the mode of lowering at load that lowers the same regions.
func (p *filePair) lowering() etrun.Lowering {
	if p.all {
		return etrun.LowerAll
	}
	return etrun.LowerAuto
}

// compare runs both programs, the original one lowered at load.
func (p *filePair) compare() error {
	ctx, go1 := context.Background(), xnnpack.Backend{Engine: xnnpack.EngineGo}
	original, err := etrun.Parse(p.from, etrun.WithLowering(p.lowering()), etrun.WithDelegates(go1))
	if err != nil {
		return nil
	}
	defer original.Close()
	options := []etrun.Option{etrun.WithLowering(etrun.LowerOff), etrun.WithDelegates(go1)}
	for _, b := range p.beside() {
		options = append(options, etrun.WithData(etrun.Bytes("constants", b)))
	}
	lowered, err := etrun.Parse(p.result.Data.Bytes(), options...)
	if err != nil {
		return err
	}
	defer lowered.Close()
	for i, name := range original.MethodNames() {
		if p.result.Methods[i].Why != "" {
			continue
		}
		p.regions += p.result.Methods[i].Report.Accepted()
		for _, r := range p.result.Methods[i].Report.Regions {
			if r.Delegate >= 0 {
				p.merged += len(r.Merged)
			}
		}
		reference, err := original.Load(ctx, name)
		if err != nil {
			continue // something that it needs is missing
		}
		m, err := lowered.Load(ctx, name)
		if err != nil {
			return err
		}
		if err := p.planned(i, m); err != nil {
			return fmt.Errorf("method %q: %w", name, err)
		}
		alike := slices.Equal(inRegions(p.result.Methods[i].Report), inRegions(reference.Report().Lowered))
		for run := range 3 {
			if err := p.compareRun(m, reference, run, alike); err != nil {
				return fmt.Errorf("method %q, run %d: %w", name, run, err)
			}
		}
		if err := errors.Join(m.Close(), reference.Close()); err != nil {
			return err
		}
	}
	return nil
}

// inRegions lists the calls that are lowered.
func inRegions(r *lower.Report) (list []ir.Origin) {
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Region >= 0 && r.Regions[c.Region].Reason == "" {
			list = append(list, c.Origin)
		}
	}
	return list
}

// compareRun requires equal outputs, or close ones if other calls were lowered at load, or not for the sizes of the run, or if the
// method resizes images: rounding then depends on the nodes around.
func (p *filePair) compareRun(m, reference *etrun.Method, run int, alike bool) error {
	err := compareModel(m, reference, run)
	if err == nil {
		return nil
	}
	for i := range m.NumOutputs() {
		absolute, relative := distance(tensorOf(m, i), tensorOf(reference, i))
		if alike && !mayRound(reference) || !(absolute <= 1e-5 || relative <= 1e-4) {
			return fmt.Errorf("%w: output %d: %g, %g of what it is", err, i, absolute, relative)
		}
	}
	p.near++
	return nil
}

func mayRound(m *etrun.Method) bool {
	i := slices.Index(m.Program().MethodNames(), m.Name())
	spec := &m.Program().Spec().Methods[i]
	return slices.ContainsFunc(spec.Operators, func(o pte.Operator) bool { return o.Name == "aten::upsample_bilinear2d" }) ||
		slices.ContainsFunc(spec.Values, func(v pte.Value) bool { return v.Tensor != nil && v.Tensor.Dynamism != tensor.Static })
}
