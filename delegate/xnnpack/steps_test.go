package xnnpack

import (
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestOutputSteps checks the output steps of a quantized network's delegates: x·sigmoid(x) of a
// quantized value as float, and a quantized sum.
func TestOutputSteps(t *testing.T) {
	file, err := os.ReadFile("../../testdata/pte/bundle_int8.bpte")
	if err != nil {
		t.Fatal(err)
	}
	b, err := pte.ParseBundle(file, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(b.Program, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range p.Methods[0].Delegates {
		g, err := graphtest.ReadGraph(d.Data, anyBytes(p.Named))
		if err != nil {
			t.Fatal(err)
		}
		scale := 0.0 // of the last quantized value
		for _, n := range g.Nodes {
			if v := &g.Values[n.Out[0]]; v.Quantized() {
				scale = float64(v.Quant.Scale)
			}
		}
		least, most := scale, scale
		if i == 0 {
			most = 1.6 * scale // the largest slope of x·sigmoid(x) is 1.1
		}
		steps, err := OutputSteps(d.Data, anyBytes(p.Named))
		if err != nil || len(steps) != len(g.Args)-g.Inputs || steps[0] < least || steps[0] > most {
			t.Errorf("delegate %d: got %v, %v, want %v to %v", i, steps, err, least, most)
		}
		if steps, err := OutputSteps(d.Data[:len(d.Data)/3], anyBytes(p.Named)); err == nil {
			t.Errorf("truncated delegate %d: got %v, want an error", i, steps)
		}
	}
}
