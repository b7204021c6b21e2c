package input

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/safetensors"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/picture"
)

// Resolve returns the values of a method's inputs. The method itself checks them against
// their declarations. Errors of a value are *Error. Canceling the context stops reading
// and decoding.
func (r *Resolver) Resolve(ctx context.Context, specs []Spec, slots []etrun.ValueMeta) ([]tensor.Value, error) {
	defer r.closeFiles()
	sources, err := r.assign(ctx, specs, slots)
	if err != nil {
		return nil, err
	}
	values := make([]tensor.Value, len(slots))
	for i, src := range sources {
		if values[i], err = r.value(ctx, i, src, slots[i]); err != nil {
			return nil, placed(err, i, slots[i].Name, src.spec.Text)
		}
	}
	return values, nil
}

// placed adds an input's index, name and argument to its error.
func placed(err error, index int, name, spec string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Index >= 0 {
		e = &Error{Reason: reasonOf(err), Err: err}
	}
	e.Index, e.Name, e.Spec = index, name, spec
	return e
}

// reasonOf returns the class of a file error.
func reasonOf(err error) error {
	for _, limit := range []error{openfile.ErrSize, npy.ErrLimit, picture.ErrLimit} {
		if errors.Is(err, limit) {
			return ErrMemory
		}
	}
	return ErrFile
}

// Random returns arguments for all inputs of a method: random tensors, and scalars with
// their values at export.
func Random(slots []etrun.ValueMeta) []Spec {
	specs := make([]Spec, len(slots))
	for i, slot := range slots {
		specs[i] = Spec{Text: "rand", Source: Fill, Fill: "rand"}
		if slot.Kind != tensor.KindTensor {
			specs[i] = Spec{Text: "value at export", Source: Scalar, Value: slot.Scalar}
		}
	}
	return specs
}

func (r *Resolver) value(ctx context.Context, index int, src source, slot etrun.ValueMeta) (tensor.Value, error) {
	switch src.kind {
	case Scalar:
		return src.spec.Value, nil
	case JSON:
		return r.jsonValue(src.json, slot)
	}
	if slot.Kind != tensor.KindTensor {
		return fillScalar(src.spec, slot)
	}
	t, err := r.tensor(ctx, index, src, slot)
	if err != nil {
		return tensor.Value{}, err
	}
	return tensor.TensorValue(t), nil
}

// fillScalar returns zero or one for a declared scalar.
func fillScalar(s *Spec, slot etrun.ValueMeta) (tensor.Value, error) {
	one := int64(0)
	if s.Fill == "ones" {
		one = 1
	}
	if s.Source == Fill && s.Fill != "rand" && s.Shape == nil {
		switch slot.Kind {
		case tensor.None:
			return tensor.Value{}, nil
		case tensor.KindInt:
			return tensor.IntValue(one), nil
		case tensor.KindDouble:
			return tensor.DoubleValue(float64(one)), nil
		case tensor.KindBool:
			return tensor.BoolValue(one != 0), nil
		case tensor.KindString:
			return tensor.StringValue(""), nil
		}
	}
	return tensor.Value{}, mismatch("elements of a tensor, want %s", want(slot))
}

func (r *Resolver) tensor(ctx context.Context, index int, src source, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	s := src.spec
	if s.Shape != nil {
		slot.Sizes = s.Shape.Sizes
		if !s.Shape.AnyType {
			slot.DType = s.Shape.DType
		}
		if len(slot.DimOrder) != len(slot.Sizes) {
			slot.DimOrder = nil // the rank is wrong: the method will report it
		}
	}
	switch src.kind {
	case Fill:
		return r.fill(ctx, index, s.Fill, slot)
	case Picture:
		return r.picture(ctx, index, src, slot)
	case Sound:
		return r.sound(index, src, slot)
	case Array:
		a, err := r.array(src.file)
		if err != nil {
			return nil, err
		}
		if s.Shape != nil && !slices.Equal(a.Sizes, s.Shape.Sizes) {
			return nil, mismatch("array of %s", tensor.FormatSizes(a.Sizes))
		}
		return wrap(a, slot)
	case Archive, Tensors:
		return wrap(src.array, slot)
	}
	return r.raw(src.file, s, slot)
}

func (r *Resolver) array(f *openfile.File) (*npy.Array, error) {
	size, regular := f.Size()
	if !regular {
		size = npy.UnknownSize
	}
	a, err := npy.Read(f, size, r.Limit)
	if err != nil {
		return nil, err
	}
	return a, r.reserve(int64(len(a.Data)))
}

// arrays reads a file with several arrays.
func (r *Resolver) arrays(src source) (list []*npy.Array, err error) {
	most, read := npy.MaxZip(r.Limit), npy.ReadZip
	if src.kind == Tensors {
		most, read = r.Limit+(16<<20), safetensors.Read
	}
	f, size, err := readerAt(src.file, src.spec.Path, most)
	if err != nil {
		return nil, err
	}
	if list, err = read(f, size, r.Limit); err != nil {
		return nil, err
	}
	for _, a := range list {
		r.Limit -= int64(len(a.Data))
	}
	return list, nil
}

// ReadArchive reads the arrays of a .npz file, of at most limit bytes in total. Errors are
// ErrFile or ErrMemory.
func ReadArchive(ctx context.Context, path string, limit int64) ([]*npy.Array, error) {
	arrays, err := readArchive(ctx, path, limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reasonOf(err), err)
	}
	return arrays, nil
}

func readArchive(ctx context.Context, path string, limit int64) ([]*npy.Array, error) {
	f, err := openfile.Open(ctx, path, openfile.Rules{Limit: npy.MaxZip(limit), Start: npy.StartBytes, Check: npy.CheckZipStart})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, _ := f.Size()
	arrays, err := npy.ReadZip(f, size, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return arrays, nil
}

// wrap makes a tensor of an array, in the logical order of arrays.
func wrap(a *npy.Array, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	if !a.HasType(slot.DType) {
		return nil, mismatch("%s %s, want %s", a.TypeName(), tensor.FormatSizes(a.Sizes), want(slot))
	}
	t := tensor.Make(slot.DType, a.Sizes, nil, tensor.Static)
	t.Bind(a.Data)
	return t, nil
}
