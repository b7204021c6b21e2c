package xnnpack

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestKeptPlans compares plans that were kept since an estimate with those of a lowering for
// compilation: they are the same graph with the same constants. A plan is kept until it is used.
func TestKeptPlans(t *testing.T) {
	kept, late := 0, 0
	for _, floats := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for i, test := range loweringCases() {
			if floats == tensor.Float16 && (strings.HasPrefix(test.name, "quantized ") || strings.HasPrefix(test.name, "dynamic ")) {
				continue
			}
			c := newCalls(uint64(i))
			c.float = floats
			test.build(c)
			want, err := planCalls(lowerFor(c.g, false), c.g)
			if c.err != nil || err != nil {
				continue // refused; other tests say which
			}
			if _, err := (Backend{}).Measure(c.g); err != nil {
				continue // not for the library
			}
			k, ok := c.g.Kept.(*keptPlan)
			if !ok {
				continue
			}
			kept, late = kept+1, late+len(k.deferred)
			got, err := planRegion(c.g)
			if err != nil || c.g.Kept != nil {
				t.Fatalf("%s: %v, kept %v", test.name, err, c.g.Kept)
			}
			if !bytes.Equal(got.graph.Payload(0), want.graph.Payload(0)) || len(got.graph.Own) != len(want.graph.Own) {
				t.Errorf("%s: the kept plan differs from the one that is compiled", test.name)
			}
		}
	}
	if kept < 300 || late < 40 {
		t.Errorf("%d plans kept with %d deferred constants, want 300 and 40 at least", kept, late)
	}
}
