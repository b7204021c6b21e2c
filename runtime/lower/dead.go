package lower

import "github.com/etrun-go/etrun/runtime/ir"

// dropDead removes calls of pure operators whose results no step reads, and the calls that only
// these read.
func (p *pass) dropDead() {
	unread := make([]int, len(p.flow.Defs)) // by definition: uses in steps that were dropped
	for i := len(p.m.Steps) - 1; i >= 0; i-- {
		if !p.isDead(i, unread) {
			continue
		}
		p.drop(i)
		p.done[len(p.done)-1].Rewrite = "dead"
		for _, d := range p.flow.Steps[i].Reads {
			unread[d]++
		}
	}
}

func (p *pass) isDead(i int, unread []int) bool {
	s := &p.m.Steps[i]
	if s.Kind != ir.KernelCall || !s.Op.Pure || s.Sig.Result != nil || len(s.Updates) > 0 || len(s.Writes) == 0 {
		return false
	}
	for _, d := range p.flow.Steps[i].Makes {
		if def := &p.flow.Defs[d]; def.Live || len(def.Uses) > unread[d] {
			return false
		}
	}
	return true
}
