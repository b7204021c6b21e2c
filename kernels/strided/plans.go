package strided

// maxPlans is how many copies [Plans] keeps.
const maxPlans = 64

// Plans are copies between buffers that stay, planned once and done many times. The zero value
// has none.
type Plans struct {
	list    []plan
	outside []dim // of the plans
}

// Reset forgets all plans.
func (p *Plans) Reset() { p.list, p.outside = p.list[:0], p.outside[:0] }

// Copy copies as [Copier.Copy] does and keeps the plan; it reports false where there are too
// many plans to keep this one.
func (p *Plans) Copy(t Threads, s *Copier, elem int, shape Shape, dst, src Buffer) bool {
	if !s.decide(elem, shape, dst, src) {
		return true
	}
	s.plan.copy(t)
	if len(p.list) == maxPlans {
		return false
	}
	at, keep := len(p.outside), s.plan
	p.outside = append(p.outside, keep.outside...)
	keep.outside = p.outside[at:]
	p.list = append(p.list, keep)
	return true
}

// Repeat does all copies again.
func (p *Plans) Repeat(t Threads) {
	for i := range p.list {
		p.list[i].copy(t)
	}
}
