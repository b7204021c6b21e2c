package lowering_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestKeptPlans lowers shapes only, as for an estimate, and adds the constants later: it is the graph of a lowering for
// compilation, with the same constants.
func TestKeptPlans(t *testing.T) {
	kept, later := 0, 0
	for _, floats := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for i, test := range loweringCases() {
			if floats == tensor.Float16 && (strings.HasPrefix(test.name, "quantized ") || strings.HasPrefix(test.name, "dynamic ")) {
				continue
			}
			c := callstest.New(uint64(i))
			c.Float = floats
			test.build(c)
			want, _, err := lowered(c.Graph)
			if c.Err != nil || err != nil {
				continue // refused; other tests say which
			}
			l := lowering.New(c.Graph, true, native.Refuses)
			got, err := l.LowerAll()
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if _, err := got.Repair(); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			deferred, ok := l.Detach()
			l.Recycle()
			if !ok {
				continue
			}
			kept, later = kept+1, later+len(deferred)
			lowering.FillConstants(got, deferred, false)
			if !bytes.Equal(got.Payload(0), want.Payload(0)) || len(got.Own) != len(want.Own) {
				t.Errorf("%s: the graph of shapes only, with its constants, differs from the one that is compiled", test.name)
			}
			lowering.RecycleGraph(got)
		}
	}
	if kept < 300 || later < 40 {
		t.Errorf("%d graphs kept with %d deferred constants, want 300 and 40 at least", kept, later)
	}
}
