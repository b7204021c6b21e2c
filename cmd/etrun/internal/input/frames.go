package input

import (
	"cmp"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
)

// Frames are the parts of a recording, each of which is the same input of a run.
type Frames struct {
	Input   int
	Seconds float64 // from one frame to the next

	samples    []float32
	frame, hop int
	pad        int // zeros before the first sample
	integers   bool
}

func newFrames(index int, r *SoundRecipe, samples []float32, from *sound.Sound) *Frames {
	hop := cmp.Or(r.Hop, r.Frame)
	return &Frames{index, float64(hop) / float64(cmp.Or(r.Rate, from.Rate)), samples, r.Frame, hop, r.Pad, from.Integers}
}

// Count returns the number of frames, at least one. The last one has the end of the recording, and zeros after it.
func (f *Frames) Count() int { return 1 + (max(f.pad+len(f.samples)-f.frame, 0)+f.hop-1)/f.hop }

// Store writes a frame to its input.
func (f *Frames) Store(t *tensor.Tensor, frame int) error {
	clear(t.Data)
	from, zeros := frame*f.hop-f.pad, 0
	if from < 0 {
		from, zeros = 0, -from
	}
	rest := tensor.Make(t.DType, []int{f.frame - zeros}, nil, tensor.Static)
	rest.Bind(t.Data[zeros*t.DType.Size():])
	return storeSamples(rest, f.samples[min(from, len(f.samples)):], f.integers)
}
