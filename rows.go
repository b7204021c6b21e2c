package etrun

import (
	"encoding/binary"
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/rows"
)

// maxKnownRows bounds the sizes of inputs that a method remembers.
const maxKnownRows = 256

// CheckRows returns nil if the last run computed every row of each output, an index of the first dimension, from the same row of
// the inputs alone: the rows of several callers may share such a run. It follows the rows through all instructions of the
// method, at the sizes of the run, which had at least two rows; contents do not matter. The error is a *BatchError that names the first
// instruction that may compute an element from several rows. Calls with sizes that were checked before allocate nothing.
func (m *Method) CheckRows() error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	if !m.executed {
		return &BatchError{m.ir.Name, "rows are known only after a run that succeeded"}
	}
	m.rowsKey = m.rowsKey[:0]
	for _, v := range m.ir.Inputs {
		if m.values[v].Kind != tensor.KindTensor {
			return &BatchError{m.ir.Name, fmt.Sprintf("input value %d is no tensor", v)}
		}
		for _, n := range m.values[v].Tensor.Sizes {
			m.rowsKey = binary.AppendUvarint(m.rowsKey, uint64(n))
		}
	}
	err, known := m.rowsKnown[string(m.rowsKey)]
	if known {
		return err
	}
	if why := rows.Apart(m.ir, m.shared.Images, rows.Run{Values: m.values, Takes: m.tookStep}); why != nil {
		err = &BatchError{m.ir.Name, why.Error()}
	}
	if m.rowsKnown == nil || len(m.rowsKnown) == maxKnownRows {
		m.rowsKnown = make(map[string]error)
	}
	m.rowsKnown[string(m.rowsKey)] = err
	return err
}

// tookStep reports whether the delegate behind a SizesJump ran.
func (m *Method) tookStep(i int) bool { return m.takes(&m.steps[i]) }
