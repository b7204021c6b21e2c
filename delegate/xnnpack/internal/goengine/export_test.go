package goengine

// SetPackedLeast sets the size from which panels are stored, until restore is called.
func SetPackedLeast(n int64) (restore func()) {
	old := PackedLeast
	PackedLeast = n
	return func() { PackedLeast = old }
}

// SetPackedVersion sets the version of panels until restore is called.
func SetPackedVersion(n int) (restore func()) {
	old := PackedVersion
	PackedVersion = n
	return func() { PackedVersion = old }
}

// Panels returns the memory for the panels of a graph, packed.
func Panels(m *Image) []byte {
	w := newPacking(m.Graph, m.Shapes, nil)
	if m.Packed.Memory == nil {
		return nil
	}
	data := m.Packed.Memory.Pages.Bytes()
	return data[int64(len(data))-w.size:]
}
