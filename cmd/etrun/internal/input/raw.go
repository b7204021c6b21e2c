package input

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// raw reads a file of elements in the slot's memory order. The size is checked
// before anything is allocated where the file has one.
func (r *Resolver) raw(s *Spec, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n, ok := tensor.Product(slot.Sizes)
	if !ok {
		return nil, mismatch("sizes %v", slot.Sizes)
	}
	due := int64(n) * int64(slot.DType.Size())
	if info.Mode().IsRegular() && info.Size() != due {
		return nil, wrongSize(info.Size(), due, s, slot)
	}
	t, err := r.allocate(slot)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadFull(f, t.Data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, wrongSize(int64(got), due, s, slot)
	}
	if err != nil {
		return nil, err
	}
	if extra, _ := io.ReadFull(f, make([]byte, 1)); extra > 0 {
		return nil, mismatch("more than %d bytes, want %s", due, want(slot))
	}
	return t, nil
}

func wrongSize(got, due int64, s *Spec, slot etrun.ValueMeta) error {
	hint := ""
	if slot.Dynamism != tensor.Static && s.Shape == nil {
		hint = fmt.Sprintf("; other sizes are stated as %s:%v:%s", s.Path, slot.DType, FormatSizes(slot.Sizes))
	}
	return mismatch("%d bytes, want %d (%s)%s", got, due, want(slot), hint)
}

// readFile reads a whole file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return b, err
}
