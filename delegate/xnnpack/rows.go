package xnnpack

// Rows implements [lowering.RowWise].
func (m *image) Rows(inputs []int) (outputs []int, ok bool) {
	if m.Shown || m.Graph.Static {
		return nil, false // what is merged in graphs of static sizes is for these sizes only
	}
	return m.Graph.Rows(m.Shapes, inputs)
}
