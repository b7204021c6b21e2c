package etrun

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
)

// Name is the method's name.
func (m *Method) Name() string { return m.ir.Name }

// Meta describes the method as the file has it.
func (m *Method) Meta() *MethodMeta { return m.program.meta(m.index) }

// Plan describes the method's memory. It must not be changed.
func (m *Method) Plan() *plan.Memory { return m.plan }

// Program is the program that the method was loaded from.
func (m *Method) Program() *Program { return m.program }

// Delegates describes the method's compiled delegates: those of the file, in its order, and
// the regions that [WithLowering] made.
func (m *Method) Delegates() []delegate.Info {
	infos := make([]delegate.Info, len(m.images))
	for i, img := range m.images {
		infos[i] = img.Info()
		infos[i].Backend = m.backends[i]
	}
	return infos
}

// Repairs lists the faults of the exporter that were repaired at load, with their places.
func (m *Method) Repairs() (list []string) {
	for i, img := range m.images {
		for _, repair := range img.Info().Repairs {
			list = append(list, fmt.Sprintf("delegate %d: %s", i, repair))
		}
	}
	for _, r := range m.ir.Relaid {
		list = append(list, r.String())
	}
	return list
}

// Folded lists the instructions that were executed at load, since they only depend on
// constants. Their results are constants in the methods of the program.
func (m *Method) Folded() []lower.Folded { return slices.Clone(m.folded) }

// Rewritten lists the instructions that lowering took away or changed.
func (m *Method) Rewritten() []lower.Rewritten { return slices.Clone(m.rewritten) }

// Lowered is what lowering decided about the regions of the method, nil without
// WithLowering. It must not be changed.
func (m *Method) Lowered() *lower.Report { return m.lowered }
