package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Resolver converts arguments to values.
type Resolver struct {
	Seed  uint64                           // for random elements
	Limit int64                            // maximum bytes for inputs and their conversion; Resolve subtracts what it used
	Say   func(format string, args ...any) // receives notes, one line each
	// Integers returns the least and the largest random integer of an input, of types wider than bytes; nil for 0 and 1.
	Integers func(index int) (least, most int)

	Attempt  int      // at the size of pictures for inputs of dynamic sizes
	Pictures []*Sized // those that have further attempts
	Shown    []*Sized // all pictures
	Frames   *Frames  // of a recording in frames, nil for none

	files []*openfile.File // opened by the current call of Resolve
}

// source is the source of one input.
type source struct {
	spec  *Spec
	kind  Source
	array *npy.Array     // from an archive
	json  []byte         // a JSON value
	file  *openfile.File // other files, open
}

// want formats a declared input for messages.
func want(slot etrun.ValueMeta) string {
	if slot.Kind != tensor.KindTensor {
		return slot.Kind.String()
	}
	text := slot.DType.String() + " " + tensor.FormatSizes(slot.Sizes)
	if slot.Dynamism == tensor.DynamicBound {
		text = "at most " + text
	}
	return text
}

// allocate makes a tensor in the slot's memory order, within the limit.
func (r *Resolver) allocate(slot etrun.ValueMeta) (*tensor.Tensor, error) {
	t := tensor.Make(slot.DType, slot.Sizes, slot.DimOrder, tensor.Static)
	if err := r.reserve(int64(t.NBytes())); err != nil {
		return nil, err
	}
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	return t, nil
}

// maxPicture is the maximum size of an image file.
const maxPicture = 256 << 20

// closeFiles closes all opened files.
func (r *Resolver) closeFiles() {
	for _, f := range r.files {
		f.Close()
	}
	r.files = nil
}

// open opens the file of an argument. Its first bytes determine the kind; if they are not
// conclusive, or the argument sets a type for raw elements, the extension does.
func (r *Resolver) open(ctx context.Context, s *Spec) (*openfile.File, Source, error) {
	kind := s.Source
	limit := int64(0) // the reader of each kind has its own limit, too
	switch kind {
	case Archive:
		limit = npy.MaxZip(r.Limit)
	case Picture:
		limit = max(min(maxPicture, r.Limit), 1)
	}
	check := func(start []byte) error {
		if known, ok := kindOf(start); ok && (s.Source != Raw || s.Shape == nil) {
			kind = known
			return nil
		}
		if check := startChecks[kind]; check != nil {
			return check(start)
		}
		return nil
	}
	f, err := openfile.Open(ctx, s.Path, openfile.Rules{Kinds: openfile.Pipes | openfile.Devices, Limit: limit, Start: startBytes, Check: check})
	if err == nil {
		r.files = append(r.files, f)
	} else if fill := nearest.Name(s.Path, []string{"zeros", "ones", "rand", "none"}); fill != "" && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; did you mean %s?", err, fill)
	}
	return f, kind, err
}

// reserve subtracts n bytes from the limit.
func (r *Resolver) reserve(n int64) error {
	if n > r.Limit {
		return &Error{Index: -1, Reason: ErrMemory, Err: fmt.Errorf("%d bytes, the remaining limit is %d", n, r.Limit)}
	}
	r.Limit -= n
	return nil
}
