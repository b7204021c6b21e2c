package xnnpack

import (
	"errors"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Rows implements [lowering.RowWise].
func (m *image) Rows(n int, args []*tensor.Tensor, dims []int) (outputs []int, err error) {
	if m.Shown {
		return nil, errors.New("its values are observed")
	}
	return m.Graph.Rows(n, graph.NewArguments(m.Graph, m.Shapes, m.Args), args, dims)
}
