package xnnpack

import "github.com/etrun-go/etrun/kernels/tensor"

// packAgain creates the first runtime once more after the library failed, in another workspace. All weights
// must be packed already: filters are released.
func (m *image) packAgain() (err error) {
	m.seal()
	shapes := m.spare.shapes
	m.spare.release()
	if m.spare.workspace, err = newWorkspace(m.lib); err != nil {
		return err
	}
	m.spare.shapes = shapes
	if m.spare.runtime, err = m.newRuntime(shapes, 0, 0, m.spare.workspace); err != nil {
		return err
	}
	return m.planSpare()
}

// pack creates the first runtime, which packs the weights.
func (m *image) pack() (err error) {
	if m.spare.workspace, err = workspaceIn(m.scratch, m.lib); err != nil {
		return err
	}
	m.small = m.smallShapes()
	if m.spare.shapes = m.shapes; m.small != nil {
		m.spare.shapes = m.small
	}
	if err := m.rehearse(); err != nil {
		return err
	}
	m.spare.runtime, err = m.newRuntime(m.spare.shapes, 0, 0, m.spare.workspace)
	return err
}

// rehearse creates and plans a runtime without packed weights, if filters are released while the first
// runtime packs them: if the library fails after that, no other engine can run the graph.
func (m *image) rehearse() (err error) {
	w := m.weights
	if w.release == nil {
		return nil
	}
	w.rehearsal = tensor.AlignedBytes(tensor.Alignment)
	defer func() { w.rehearsal = nil }()
	if m.spare.runtime, err = m.newRuntime(m.spare.shapes, 0, 0, m.spare.workspace); err == nil {
		err = m.planSpare()
	}
	m.spare.workspace.delete(m.spare.runtime)
	m.spare.runtime, m.spare.planned = 0, false
	return err
}
