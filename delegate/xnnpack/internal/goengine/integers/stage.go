package integers

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/nhwc"
)

// stage is the activations of a convolution in the form that its products read: surrounded by padding, and followed by
// readable bytes. If the input already has that form, it is used instead.
type stage struct {
	nhwc.Padded[uint8]
	needed bool
}

// plan sets the stage up for windows over an input of [N, H, W, C]; tail is the number of bytes
// that products read past what they use. It reports whether the stage has a reasonable size.
func (s *stage) plan(n *graph.Node, in, out graph.Shape, tail int) bool {
	s.Plan(frame.ImagesOf(n, in, out), in.Dim[0])
	s.needed = tail > 0 || s.Differs()
	return s.bytes() <= stageLimit(in, out)
}

// bytes returns the size of the stage.
func (s *stage) bytes() int64 { return graph.Plus(s.Numel(), numbers.Overread) }

// stageLimit returns the largest reasonable size of a stage: a larger one is mostly padding.
func stageLimit(in, out graph.Shape) int64 { return int64(4*(in.Numel()+out.Numel())) + 1<<16 }
