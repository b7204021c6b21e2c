package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
)

// Workspace implements delegate.Planned: in the Go engine, nodes are moments, each intermediate value
// has a block, and the last block is the working memory of the nodes. Values that are shown are read
// after the call.
func (m *image) Workspace() *delegate.Workspace {
	if own, ok := m.by.(*goengine.Image); ok {
		return own.Workspace()
	}
	return nil
}
