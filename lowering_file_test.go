//go:build linux

package etrun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// lowerFile lowers a program with the Go engine's backend.
func lowerFile(data []byte) (*compile.Result, error) {
	go1 := xnnpack.Backend{Engine: xnnpack.EngineGo}
	return compile.Lower(context.Background(), data, compile.Options{Backends: map[string]delegate.Backend{go1.ID(): go1},
		Writers: []lowering.Writer{xnnpack.Writer{Backend: go1}}, Operators: DefaultOperators(), MinProfit: -1, Planned: math.MaxInt32})
}

// filePair is a program, and the same one lowered to a file.
type filePair struct {
	path          string
	from          []byte
	result        *compile.Result
	regions       int
	before, after int64
	near          int // runs with close outputs
}

// TestLoweredFiles lowers programs of the exporter, and of a campaign's corpus, to files, and runs these without lowering. Their
// outputs are the bytes that lowering at load computes, on the same engine.
func TestLoweredFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.pte")
	if err != nil {
		t.Fatal(err)
	}
	regions := 0
	for _, path := range append(files, campaign.Corpus(".pte")...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pte.Parse(data, pte.Limits{}); err != nil {
			continue
		}
		p := &filePair{path: path, from: data}
		if p.result, err = lowerFile(data); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := p.compare(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if p.result.Lowered() {
			for _, fault := range compiletest.Check(data, p.result.Data) {
				t.Errorf("%s: %s", path, fault)
			}
		}
		regions += p.regions
		for i := range p.result.Methods {
			m := &p.result.Methods[i]
			p.before, p.after = p.before+m.Before, p.after+m.After
			if m.Why != "" {
				t.Logf("%s: %s: %s", path, m.Name, m.Why)
			}
		}
		if p.regions > 0 {
			t.Logf("%s: %d regions, %d to %d bytes (%.3f), planned %d to %d, %d runs close", path, p.regions, len(data), len(p.result.Data),
				float64(len(p.result.Data))/float64(len(data)), p.before, p.after, p.near)
		}
	}
	if regions < 10 {
		t.Errorf("%d regions: the test shows nothing", regions)
	}
}

// compare runs both programs, the original one lowered at load.
func (p *filePair) compare() error {
	ctx, go1 := context.Background(), xnnpack.Backend{Engine: xnnpack.EngineGo}
	original, err := Parse(p.from, WithLowering(LowerAuto), WithMinProfit(-1), WithDelegates(go1))
	if err != nil {
		return nil
	}
	defer original.Close()
	lowered, err := Parse(p.result.Data, WithLowering(LowerOff), WithDelegates(go1))
	if err != nil {
		return err
	}
	defer lowered.Close()
	for i, name := range original.MethodNames() {
		if p.result.Methods[i].Why != "" {
			continue
		}
		p.regions += p.result.Methods[i].Report.Taken()
		reference, err := original.Load(ctx, name)
		if err != nil {
			continue // something that it needs is missing
		}
		m, err := lowered.Load(ctx, name)
		if err != nil {
			return err
		}
		for run := range 3 {
			if err := p.compareRun(m, reference, run); err != nil {
				return fmt.Errorf("method %q, run %d: %w", name, run, err)
			}
		}
		if err := errors.Join(m.Close(), reference.Close()); err != nil {
			return err
		}
	}
	return nil
}

// compareRun requires equal outputs, or close ones if a region was not run at load for the sizes of the run, or if the method resizes images: rounding then
// depends on the nodes around.
func (p *filePair) compareRun(m, reference *Method, run int) error {
	err := compareModel(m, reference, run)
	if err == nil {
		return nil
	}
	for i, v := range m.ir.Outputs {
		d := distance(i, &m.values[v], &reference.values[reference.ir.Outputs[i]])
		if !mayRound(reference) || d.Absolute > 1e-5 && d.Relative > 1e-4 {
			return fmt.Errorf("%w: %+v", err, d)
		}
	}
	p.near++
	return nil
}

func mayRound(m *Method) bool {
	spec := &m.program.spec.Methods[m.index]
	return slices.ContainsFunc(spec.Operators, func(o pte.Operator) bool { return o.Name == "aten::upsample_bilinear2d" }) ||
		slices.ContainsFunc(spec.Values, func(v pte.Value) bool { return v.Tensor != nil && v.Tensor.Dynamism != tensor.Static })
}
