package xnnpack

// Rows implements [lowering.RowWise].
func (m *image) Rows(inputs []int) (outputs []int, ok bool) {
	if m.Shown {
		return nil, false
	}
	return m.Graph.Rows(m.Shapes, inputs)
}
