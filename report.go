package etrun

import (
	"fmt"

	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/rows"
)

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
	r := &Report{Plan: m.in.Plan(), Folded: m.shared.Folded, Rewritten: m.shared.Rewritten, Lowered: m.shared.Lowered,
		ReleasedBytes: m.shared.Released}
	for _, d := range m.in.Distances() {
		r.Distances = append(r.Distances, Distance(d))
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
	return append(list, m.program.fileRepairs(m.index, m.shared.IR)...)
}

func (m *Method) batchReport() BatchReport {
	plan, err := rows.Make(m.shared.IR, m.shared.Images, nil)
	if err != nil {
		return BatchReport{Reason: err.Error()}
	}
	return BatchReport{Batched: plan.Together, Separate: plan.Each}
}

// Distance is the largest difference between an output of a lowered method and the same output
// without lowering, in the last run.
type Distance struct {
	Output   int
	Index    int     // index, in memory order, of the element that differs most; -1 if all are equal
	Absolute float64 // absolute difference of that element
	Relative float64 // Absolute over the value without lowering
}
