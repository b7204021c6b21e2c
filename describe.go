package etrun

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
)

// Name returns the method's name.
func (m *Method) Name() string { return m.ir.Name }

// Meta describes the method as declared in the file.
func (m *Method) Meta() *MethodMeta { return m.program.meta(m.index) }

// Plan returns the method's memory plan, which must not be changed.
func (m *Method) Plan() *plan.Memory { return m.plan }

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

// Repairs lists the exporter faults that were repaired at load, with their locations. It returns nil once
// the program and all its methods are closed.
func (m *Method) Repairs() (list []string) {
	if !m.program.keep() {
		return nil
	}
	defer m.program.release()
	for i, img := range m.shared.Images {
		for _, repair := range img.Info().Repairs {
			list = append(list, fmt.Sprintf("delegate %d: %s", i, repair))
		}
	}
	return append(list, m.program.fileRepairs(m.index, m.ir)...)
}

// Folded lists the instructions that were executed at load because they depend on constants only.
// All instances of the method share the results.
func (m *Method) Folded() []lower.Folded { return slices.Clone(m.shared.Folded) }

// Rewritten lists the instructions that lowering removed or changed.
func (m *Method) Rewritten() []lower.Rewritten { return slices.Clone(m.shared.Rewritten) }

// Lowered returns the lowering decision for each region of the method, nil unless the program was
// opened with LowerAuto, LowerAll or LowerVerify. It must not be changed.
func (m *Method) Lowered() *lower.Report { return m.shared.Lowered }

// ReleasedBytes returns the size of the constants, of files and computed at load, whose memory was
// given back because nothing reads them any more. See [WithConstants].
func (m *Method) ReleasedBytes() int64 { return m.shared.Released }
