package strided

// maxPlans is the largest number of copies that [Plans] stores.
const maxPlans = 64

// Plans are copies between fixed buffers, planned once and executed repeatedly. The zero value is
// empty.
type Plans struct {
	list    []plan
	outside []dim // of the plans
}

// Reset removes all plans.
func (p *Plans) Reset() { p.list, p.outside = p.list[:0], p.outside[:0] }

// Copy copies as [Copier.Copy] does and stores the plan; it returns false if there are too many
// plans.
func (p *Plans) Copy(t Threads, s *Copier, elem int, shape Shape, dst, src Buffer) bool {
	if !s.decide(elem, shape, dst, src) {
		return true
	}
	s.plan.copy(t)
	if len(p.list) == maxPlans {
		return false
	}
	start, stored := len(p.outside), s.plan
	p.outside = append(p.outside, stored.outside...)
	stored.outside = p.outside[start:]
	p.list = append(p.list, stored)
	return true
}

// View is Copy for views, see [Copier.View].
func (p *Plans) View(t Threads, s *Copier, dst, src *View) bool {
	return p.Copy(t, s, src.Elem, shapeOf(dst, src), dst.Buffer, src.Buffer)
}

// Repeat executes all copies again.
func (p *Plans) Repeat(t Threads) {
	for i := range p.list {
		p.list[i].copy(t)
	}
}
