package prepare

import (
	"context"
	"errors"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// findAvailable asks how much memory the system has left. That of images of an earlier run is part of it.
func (l *load) findAvailable() {
	if l.Available != nil {
		if l.available = l.Available(); l.available > 0 {
			l.available += packedBytes(l.files.needs)
		}
	}
}

func packedBytes(needs []delegate.Needs) (n int64) {
	for i := range needs {
		n += needs[i].PackedBytes
	}
	return n
}

// lacks returns an error if packed weights of an image, which refused with err, and done bytes of others, are more than the system has
// left; nil for other reasons.
func (l *load) lacks(done int64, err error) error {
	var more delegate.WeightsError
	if !errors.As(err, &more) {
		return nil
	}
	return l.compare(Part{"packed weights", done + int64(more)}, Part{"folded constants", l.foldedBytes()})
}

// compare returns an error if parts of the memory of a method, and what a process has besides, are more than the system has left.
func (l *load) compare(parts ...Part) error {
	want := int64(0)
	for _, p := range parts {
		want += p.Bytes
	}
	besides := min(max(want/32, l.besides()), 8<<20)
	if want += besides; l.available == 0 || want <= l.available {
		return nil
	}
	return &MemoryError{Want: want, Limit: l.available, Available: true, Parts: append(parts, Part{"heap and stacks", besides})}
}

// besides is what the heap, stacks and tables of a process grow by at least after a load begins, and the arenas in a small call of inputs whose
// sizes vary.
func (l *load) besides() int64 {
	for _, v := range l.Method.Inputs {
		if t := l.Method.Values[v].Tensor; t != nil && t.Dynamism != tensor.Static {
			return 7 << 20
		}
	}
	return 4 << 20
}

// spare returns how many bytes of constants may be made besides those that have been: as many as the program has, and as the system has
// left besides the garbage of making them.
func (l *load) spare(made int64) int64 {
	if l.available == 0 {
		return l.Size
	}
	return min(l.Size, max(l.available-l.besides()-l.Size/8-made, 0))
}

// measure fails, before anything is packed, if the packed weights of the payloads are more than the system has left. It asks for them only if
// the files make that probable. The images that are too large for any limit say what they need.
func (l *load) measure(ctx context.Context, merged []bool, regions []delegate.Needs) error {
	if l.available == 0 || l.FileBytes < l.available/2 {
		return nil
	}
	packed := delegate.WeightsError(0)
	for d, o := range l.files.opened {
		if o == nil || merged[d] {
			continue
		}
		o.payload.Limits = delegate.Limits{Weights: -1}
		img, err := o.Compile(ctx)
		if err == nil { // it packs nothing
			l.files.opened[d] = nil
			if err := l.setImage(d, img); err != nil {
				return err
			}
		}
		var more delegate.WeightsError
		if errors.As(err, &more) {
			packed += more
		}
	}
	return l.lacks(packedBytes(l.files.needs)+packedBytes(regions), packed)
}

// foldedBytes returns the size of the constants from which weights are packed, and which are freed after that.
func (l *load) foldedBytes() int64 {
	if l.base == nil {
		return 0
	}
	return foldedBytes(l.base.folded) + rewrittenBytes(l.base.rewrites)
}

// checkAvailable fails if a method needs more memory than the system has left: its packed weights, and what every
// run touches. State, and values whose sizes vary, are touched only as far as they are used: runs check that.
func (l *load) checkAvailable(m *Method) error {
	runs := int64(0)
	if !m.IR.HasDynamicInputs() {
		runs = m.Plan.Bytes() - m.Plan.StateBytes + m.ScratchBytes()
	}
	return l.compare(Part{"packed weights", packedBytes(m.Needs)}, Part{"arenas", runs})
}
