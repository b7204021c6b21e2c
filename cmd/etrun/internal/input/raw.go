package input

import (
	"fmt"
	"io"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// raw reads a file of elements in the slot's memory order. If the file has a size, it is
// checked before anything is allocated.
func (r *Resolver) raw(f *openfile.File, s *Spec, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	if size, regular := f.Size(); regular && s.Shape == nil {
		slot.Sizes = sizesFor(size, &slot)
	}
	n, ok := tensor.Product(slot.Sizes)
	if !ok {
		return nil, mismatch("sizes %v", slot.Sizes)
	}
	due := int64(n) * int64(slot.DType.Size())
	if size, regular := f.Size(); regular && size != due {
		return nil, wrongSize(size, due, s, slot)
	}
	t, err := r.allocate(slot)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadFull(f, t.Data)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return nil, wrongSize(int64(got), due, s, slot)
	}
	if err != nil {
		return nil, err
	}
	switch _, err := io.ReadFull(f, make([]byte, 1)); {
	case err == nil:
		return nil, mismatch("more than %d bytes, want %s", due, want(slot))
	case err != io.EOF:
		return nil, err
	}
	return t, nil
}

// sizesFor returns the sizes of a file of the given number of bytes: if only one size of a dynamic
// slot can vary, because the bounds of the others are 1, the file determines it. Otherwise they are
// the slot's own.
func sizesFor(bytes int64, slot *etrun.ValueMeta) []int {
	vary := -1
	for i, n := range slot.Sizes {
		if n != 1 && vary >= 0 {
			return slot.Sizes
		}
		if n != 1 {
			vary = i
		}
	}
	element := int64(slot.DType.Size())
	if slot.Dynamism == tensor.Static || vary < 0 || bytes == 0 || element == 0 || bytes%element != 0 || bytes/element > int64(slot.Sizes[vary]) {
		return slot.Sizes
	}
	sizes := slices.Clone(slot.Sizes)
	sizes[vary] = int(bytes / element)
	return sizes
}

func wrongSize(got, due int64, s *Spec, slot etrun.ValueMeta) error {
	hint := ""
	if slot.Dynamism != tensor.Static && s.Shape == nil {
		hint = fmt.Sprintf("; set other sizes as %s:%v:%s", s.Path, slot.DType, tensor.FormatSizes(slot.Sizes))
	}
	return mismatch("%d bytes, want %d (%s)%s", got, due, want(slot), hint)
}
