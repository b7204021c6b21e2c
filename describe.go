package etrun

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/rows"
)

// Name returns the method's name.
func (m *Method) Name() string { return m.ir.Name }

// Meta describes the method as declared in the file.
func (m *Method) Meta() *MethodMeta { return m.program.meta(m.index) }

// Program returns the program that the method was loaded from.
func (m *Method) Program() *Program { return m.program }

// Delegates describes the method's compiled delegates: first those of the file, in file order, then
// the regions compiled because of [WithLowering]. It returns nil once the program and all its methods are
// closed.
func (m *Method) Delegates() []delegate.Info {
	if !m.program.keep() {
		return nil
	}
	defer m.program.release()
	infos := make([]delegate.Info, len(m.shared.Images))
	for i, img := range m.shared.Images {
		infos[i] = img.Info()
		infos[i].Backend = m.shared.Backends[i]
		if m.shared.Work[i] != nil {
			infos[i].Needs = prepare.Unplanned(infos[i].Needs)
		}
	}
	return infos
}

// Report is what the load of a method decided, and how the outputs of its last run differ with [LowerVerify]. Nothing in it must be changed.
// The types of other packages in it may change.
type Report struct {
	Plan          *plan.Memory
	Folded        []lower.Folded    // instructions that were executed at load, because they depend on constants only
	Rewritten     []lower.Rewritten // instructions that lowering removed or changed
	Lowered       *lower.Report     // the decision for each region, nil without [LowerAuto], [LowerAll] or [LowerVerify]
	Repairs       []string          // exporter faults that were repaired, with their locations
	ReleasedBytes int64             // of constants whose memory was given back, because nothing reads them any more: see [WithConstants]
	Batch         BatchReport
	Distances     []Distance // of the outputs of the last run, nil without [LowerVerify]
}

// BatchReport has the numbers of instructions that instances would run together in a [Batch], and each by itself. Without a run it is
// not known which tensors have other sizes that vary: NewBatch may still find fewer.
type BatchReport struct {
	Batched, Separate int
	Reason            string // why no instructions would run together
}

// Report returns what is known of the method. It has no repairs and no batch once the program and all its methods are closed.
func (m *Method) Report() *Report {
	r := &Report{Plan: m.plan, Folded: m.shared.Folded, Rewritten: m.shared.Rewritten, Lowered: m.shared.Lowered,
		ReleasedBytes: m.shared.Released}
	if m.reference != nil && m.begin() == nil {
		r.Distances = slices.Clone(m.distances)
		m.end()
	}
	if m.program.keep() {
		defer m.program.release()
		r.Repairs, r.Batch = m.repairs(), m.batchReport()
	}
	return r
}

func (m *Method) repairs() (list []string) {
	for i, img := range m.shared.Images {
		for _, repair := range img.Info().Repairs {
			list = append(list, fmt.Sprintf("delegate %d: %s", i, repair))
		}
	}
	return append(list, m.program.fileRepairs(m.index, m.ir)...)
}

func (m *Method) batchReport() BatchReport {
	plan, err := rows.Make(m.ir, m.shared.Images, nil)
	if err != nil {
		return BatchReport{Reason: err.Error()}
	}
	return BatchReport{Batched: plan.Together, Separate: plan.Each}
}
