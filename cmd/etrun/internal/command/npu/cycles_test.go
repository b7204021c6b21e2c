package npu

import (
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

func TestDominant(t *testing.T) {
	pool := npu.Cost{Name: "NPU_OP_POOL", Detail: " pooling_mode=AVERAGE", Cycles: 10, Copy: true}
	conv := npu.Cost{Name: "NPU_OP_CONV", Cycles: 100}
	for _, c := range []struct {
		costs []npu.Cost
		want  string
	}{
		{nil, "no operations"},
		{[]npu.Cost{conv}, "1 CONV takes 100 % of the cycles"},
		{[]npu.Cost{pool, conv, pool}, "1 CONV takes 83 % of the cycles; layout copies are 2 of 3 operations"},
	} {
		d := delegateCycles{Kinds: kindsOf(c.costs, &npu.Timings{})}
		for i := range c.costs {
			d.Operations = append(d.Operations, opCycles{Copy: c.costs[i].Copy})
		}
		if got := d.dominant(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTimingsOfAFastScratch(t *testing.T) {
	for _, f := range []isa.Family{isa.U55, isa.U65, isa.U85} {
		slow, err := new(npuCycles).timings(f, false)
		fast, err2 := new(npuCycles).timings(f, true)
		if err != nil || err2 != nil || slow[1] != slow[2] || fast[1] != fast[0] || fast[2] != slow[2] {
			t.Errorf("%v: %v, and with a fast scratch %v", f, slow, fast)
		}
	}
	n := npuCycles{memories: []string{"scratch=3,4,5"}}
	if got, err := n.timings(isa.U85, true); err != nil || got[1].Rate != 3 || got[1].Latency != 4 || got[1].Burst != 5 {
		t.Errorf("got %v, %v", got, err)
	}
}
