// Package timeline computes the memory use of a method over time: the chart of its plans, and
// the live storages at the peak.
package timeline

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
)

// Timeline is the memory of a method over the steps of a run.
type Timeline struct {
	Peak      Moment // the first one with the most live bytes in the arenas and in scratch of delegates
	PeakBytes int64  // these bytes

	plan      *plan.Memory
	moment    int // of the peak
	delegates []delegate.Info
	names     []string // by item of the plan
	scratches []scratch
}

// scratch is working memory of a delegate outside the plan.
type scratch struct {
	name        string
	bytes       int64
	first, last int // moments
	shared      bool
}

// Moment is a moment of a memory plan: an instruction, from -1 (inputs are set) to their number
// (outputs are read), and the index among the moments of the instruction.
type Moment struct {
	Step, Index int
	several     bool // the instruction has other moments
}

// MomentOf returns a moment of a plan.
func MomentOf(p *plan.Memory, moment int) Moment {
	m := Moment{Step: p.Step(moment)}
	if m.Step >= 0 && m.Step < len(p.Method.Steps) {
		m.Index = moment - p.Moments[m.Step]
		m.several = p.Moments[m.Step+1]-p.Moments[m.Step] > 1
	}
	return m
}

// String returns the instruction, or instruction.index if it has several moments.
func (m Moment) String() string {
	if m.several {
		return fmt.Sprintf("%d.%d", m.Step, m.Index)
	}
	return fmt.Sprint(m.Step)
}

// New computes the timeline of a method.
func New(m *etrun.Method) *Timeline {
	t := &Timeline{plan: m.Report().Plan, delegates: m.Delegates()}
	t.names = names(t.plan.Method)
	for d := range t.delegates {
		from, to := t.plan.Blocks(d)
		t.names = append(t.names, slices.Repeat([]string{scratchName(d)}, to-from)...)
	}
	t.findScratch()
	t.findPeak()
	return t
}

// findScratch lists the working memory of delegates outside the plan: first the private scratch of each, which is always
// alive, then what they share, which is alive during their calls.
func (t *Timeline) findScratch() {
	starts := t.plan.Moments
	for i := range t.delegates {
		if own := t.delegates[i].Scratch - t.delegates[i].Shared; own > 0 {
			t.scratches = append(t.scratches, scratch{scratchName(i), own, -1, starts[len(starts)-1], false})
		}
	}
	for k := range t.plan.Method.Steps {
		s := &t.plan.Method.Steps[k]
		if s.Kind != ir.DelegateCall || s.Delegate >= len(t.delegates) {
			continue
		}
		if shared := t.delegates[s.Delegate].Shared; shared > 0 {
			t.scratches = append(t.scratches, scratch{scratchName(s.Delegate), shared, starts[k], starts[k+1] - 1, true})
		}
	}
}

func scratchName(delegate int) string { return fmt.Sprintf("delegate %d scratch", delegate) }

// names returns the names of storages: from the file, as inputs, or by the operator that
// writes them first.
func names(m *ir.Method) []string {
	list := make([]string, len(m.Storages))
	name := func(v int, text string) {
		if s := m.Values[v].Storage; s >= 0 && list[s] == "" {
			list[s] = text
		}
	}
	for i := range m.Storages {
		for _, v := range m.Storages[i].Values {
			name(v, m.Values[v].Tensor.Name)
		}
	}
	for k, v := range m.Inputs {
		name(v, fmt.Sprintf("input %d", k))
	}
	for i := range m.Steps {
		step := &m.Steps[i]
		if step.IsView() {
			continue
		}
		for _, v := range slices.Concat(step.Writes, step.Updates) {
			name(v, chart.Short(m.StepName(step)))
		}
	}
	return list
}

// findPeak sums the live bytes at every moment.
func (t *Timeline) findPeak() {
	moments := t.plan.Moments
	change := make([]int64, moments[len(moments)-1]+3)
	for i := range t.plan.Items {
		it := &t.plan.Items[i]
		if it.Bytes > 0 {
			change[it.First+1] += it.Bytes
			change[it.Last+2] -= it.Bytes
		}
	}
	for _, s := range t.scratches {
		change[s.first+1] += s.bytes
		change[s.last+2] -= s.bytes
	}
	alive := int64(0)
	t.moment = -1
	for i, bytes := range change[:len(change)-1] {
		if alive += bytes; alive > t.PeakBytes {
			t.moment, t.PeakBytes = i-1, alive
		}
	}
	t.Peak = MomentOf(t.plan, t.moment)
}

// Live is a storage, or working memory of a delegate, that is alive at the peak.
type Live struct {
	Name, Type, Kind string
	Bytes            int64
	First, Last      Moment
}

// AtPeak lists what is alive at the peak, the largest first.
func (t *Timeline) AtPeak() (list []Live) {
	for i := range t.plan.Items {
		if it := &t.plan.Items[i]; it.Bytes > 0 && it.First <= t.moment && t.moment <= it.Last {
			list = append(list, t.live(i))
		}
	}
	for _, s := range t.scratches {
		if s.first <= t.moment && t.moment <= s.last {
			list = append(list, Live{Name: s.name, Kind: "scratch", Bytes: s.bytes, First: MomentOf(t.plan, s.first),
				Last: MomentOf(t.plan, s.last)})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Bytes > list[j].Bytes })
	return list
}

// live describes an item of the plan.
func (t *Timeline) live(i int) Live {
	it := &t.plan.Items[i]
	l := Live{Name: t.names[i], Kind: "scratch", Bytes: it.Bytes, First: MomentOf(t.plan, it.First), Last: MomentOf(t.plan, it.Last)}
	if i < len(t.plan.Method.Storages) {
		s := &t.plan.Method.Storages[i]
		l.Type, l.Kind = typeOf(t.plan.Method, s), class(s)
	}
	return l
}

func typeOf(m *ir.Method, s *ir.Storage) string {
	if len(s.Values) == 0 {
		return ""
	}
	d := m.Values[s.Values[0]].Tensor
	return d.DType.String() + " " + tensor.FormatSizes(d.Sizes)
}

// class returns one of chart.Classes.
func class(s *ir.Storage) string {
	if s.Output && s.Kind == ir.Activation {
		return "output"
	}
	return s.Kind.String()
}

// Chart draws the plan in use and below it the other one: arenas one above the other, then
// state, then the delegates' scratch.
func (t *Timeline) Chart(title string) *chart.Chart {
	mp := t.plan
	c := &chart.Chart{Title: title, Starts: mp.Moments, Bound: mp.LowerBound, Peak: t.moment}
	file, own := t.draw(&mp.File, "plan of the file"), t.draw(&mp.Own, "own plan")
	if mp.File.Whole && mp.Source == mp.File.Source {
		file.Name, own.Name = file.Name+", in use", own.Name+", not in use"
		c.Plans = []chart.Plan{file, own}
		return c
	}
	own.Name += ", in use"
	if c.Plans = []chart.Plan{own}; mp.File.Size() > 0 {
		file.Name += ", not in use" + unusable(mp)
		c.Plans = append(c.Plans, file)
	}
	return c
}

// unusable returns the reason why the file's plan cannot be used, if there is one.
func unusable(mp *plan.Memory) string {
	switch {
	case len(mp.Conflicts) > 0:
		return ": live storages overlap"
	case !mp.File.Whole:
		return ": it does not cover all storages"
	}
	return ""
}

func (t *Timeline) draw(a *plan.Arrangement, name string) chart.Plan {
	p := chart.Plan{Name: name + ", " + bytesize.Format(a.Size()), Size: a.Size()}
	bases := make([]int64, len(a.Arenas)+1)
	for i, size := range a.Arenas {
		bases[i+1] = bases[i] + size
	}
	clash := t.conflicting(a)
	for i := range t.plan.Items {
		if it := &t.plan.Items[i]; it.Bytes > 0 && a.Placed[i] {
			box := t.box(i, bases[a.Places[i].Arena]+a.Places[i].Offset)
			box.Conflict = clash[i]
			p.Boxes = append(p.Boxes, box)
		}
	}
	return t.scratch(t.state(p))
}

// conflicting returns the storages that overlap in the file's plan.
func (t *Timeline) conflicting(a *plan.Arrangement) map[int]bool {
	set := make(map[int]bool)
	if a == &t.plan.File {
		for _, c := range t.plan.Conflicts {
			set[c.A], set[c.B] = true, true
		}
	}
	return set
}

// box returns the box of an item of the plan.
func (t *Timeline) box(i int, offset int64) chart.Box {
	it, l, values := &t.plan.Items[i], t.live(i), ""
	if i < len(t.plan.Method.Storages) {
		values = fmt.Sprintf(", values %v", t.plan.Method.Storages[i].Values)
	}
	box := t.boxOf(l, offset, it.First, it.Last, values)
	box.Item = strconv.Itoa(i)
	return box
}

// boxOf returns the box of something that is alive from one moment to another.
func (t *Timeline) boxOf(l Live, offset int64, first, last int, values string) chart.Box {
	_, shape, _ := strings.Cut(l.Type, " ")
	return chart.Box{First: first, Last: last, Offset: offset, Bytes: l.Bytes, Class: l.Kind, Label: strings.TrimSpace(l.Name + " " + shape),
		Detail: fmt.Sprintf("%s\n%s\n%s, bytes %d to %d, instructions %s to %s%s", l.Name, strings.TrimPrefix(l.Type+", "+l.Kind, ", "),
			bytesize.Format(l.Bytes), offset, offset+l.Bytes, l.First, l.Last, values)}
}

// state adds the persistent storages above the arenas.
func (t *Timeline) state(p chart.Plan) chart.Plan {
	at := p.Size
	m := t.plan.Method
	for i := range m.Storages {
		if s := &m.Storages[i]; s.Kind == ir.State && len(s.Values) > 0 {
			end := len(m.Steps)
			l := Live{t.names[i], typeOf(m, s), class(s), s.Bytes, Moment{Step: -1}, Moment{Step: end}}
			box := t.boxOf(l, at, -1, t.plan.Moments[end], fmt.Sprintf(", values %v", s.Values))
			box.Item = strconv.Itoa(i)
			p.Boxes = append(p.Boxes, box)
			at += s.Bytes
		}
	}
	return p
}

// scratch adds the working memory of delegates at the top: first the private scratch of each,
// above it the scratch that they share.
func (t *Timeline) scratch(p chart.Plan) chart.Plan {
	at := p.Size + t.plan.StateBytes
	for _, s := range t.scratches {
		p.Boxes = append(p.Boxes, chart.Box{First: s.first, Last: s.last, Offset: at, Bytes: s.bytes, Label: s.name, Class: "scratch",
			Detail: s.name + "\n" + bytesize.Format(s.bytes)})
		if !s.shared {
			at += s.bytes
		}
	}
	return p
}
