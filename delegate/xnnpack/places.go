package xnnpack

import (
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
)

// Workspace implements lowering.Planned: in the Go engine, nodes are moments, each intermediate value
// has a block, and the last block is the working memory of the nodes. Values that are shown are read
// after the call.
func (m *image) Workspace() *lowering.Workspace {
	if own, ok := m.by.(*goengine.Image); ok {
		return own.Workspace()
	}
	return nil
}
