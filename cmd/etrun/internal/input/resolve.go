package input

import (
	"errors"
	"fmt"
	"os"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/picture"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Slot is one declared input of a method.
type Slot struct {
	Name     string      // may be empty
	Kind     tensor.Kind // None also stands for an integer that varies, and for text
	DType    tensor.DType
	Sizes    []int // upper bounds unless Dynamism is Static
	DimOrder []uint8
	Dynamism tensor.Dynamism
	Value    tensor.Value // of a scalar: the value at export
}

func (s Slot) String() string {
	if s.Kind != tensor.KindTensor {
		return s.Kind.String()
	}
	text := s.DType.String() + " " + FormatSizes(s.Sizes)
	if s.Dynamism == tensor.DynamicBound {
		text = "at most " + text
	}
	return text
}

// Resolver makes values of arguments.
type Resolver struct {
	Seed  uint64                           // of random elements
	Limit int64                            // bytes of all inputs together
	Say   func(format string, args ...any) // hears what was chosen or done, one line a call
}

// Resolve makes the values of a method's inputs. Faults in a value are *Error.
func (r *Resolver) Resolve(specs []Spec, slots []Slot) ([]tensor.Value, error) {
	sources, err := r.assign(specs, slots)
	if err != nil {
		return nil, err
	}
	values := make([]tensor.Value, len(slots))
	for i, src := range sources {
		if values[i], err = r.value(i, src, slots[i]); err != nil {
			return nil, placed(err, i, slots[i].Name, src.spec.Text)
		}
	}
	return values, nil
}

// placed puts an input's index, name and argument into its error.
func placed(err error, index int, name, spec string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Index >= 0 {
		e = &Error{Err: err}
	}
	e.Index, e.Name, e.Spec = index, name, spec
	return e
}

// Random makes inputs for a method of which nothing is known: random tensors, and
// scalars as they were at export.
func (r *Resolver) Random(slots []Slot) ([]tensor.Value, error) {
	values := make([]tensor.Value, len(slots))
	for i, slot := range slots {
		if slot.Kind != tensor.KindTensor {
			values[i] = slot.Value
			continue
		}
		t, err := r.fill(i, "rand", slot, slot.Sizes)
		if err != nil {
			return nil, placed(err, i, slot.Name, "")
		}
		values[i] = tensor.TensorValue(t)
	}
	return values, nil
}

func (r *Resolver) value(index int, src source, slot Slot) (tensor.Value, error) {
	if src.spec.Source == Scalar {
		return scalar(src.spec.Value, slot)
	}
	if slot.Kind != tensor.KindTensor {
		return fillScalar(src.spec, slot)
	}
	t, err := r.tensor(index, src, slot)
	if err != nil {
		return tensor.Value{}, err
	}
	return tensor.TensorValue(t), nil
}

// scalar lets every scalar through to a None, which is how programs declare
// integers that vary and text; whether the program can use it is its own matter.
func scalar(v tensor.Value, slot Slot) (tensor.Value, error) {
	if slot.Kind != v.Kind && slot.Kind != tensor.None {
		return v, mismatch("%v, want %v", v.Kind, slot)
	}
	return v, nil
}

// fillScalar is zeros or ones for a declared scalar.
func fillScalar(s *Spec, slot Slot) (tensor.Value, error) {
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
	return tensor.Value{}, mismatch("elements of a tensor, want %v", slot)
}

func (r *Resolver) tensor(index int, src source, slot Slot) (*tensor.Tensor, error) {
	s := src.spec
	if s.Shape != nil {
		if err := slot.accepts(s.Shape.DType, s.Shape.Sizes); err != nil {
			return nil, err
		}
		slot.Sizes = s.Shape.Sizes
	}
	switch s.Source {
	case Fill:
		return r.fill(index, s.Fill, slot, slot.Sizes)
	case Picture:
		return r.picture(index, s, slot)
	case Array:
		a, err := r.array(s.Path)
		if err != nil {
			return nil, err
		}
		return r.layOut(a, slot)
	case Archive:
		return r.layOut(src.array, slot)
	}
	return r.raw(s, slot)
}

// accepts checks an element type and sizes against the declaration, by the rules
// that a method's own inputs follow: the rank stays, a bounded input may take any
// sizes whose elements fit.
func (s Slot) accepts(d tensor.DType, sizes []int) error {
	given := d.String() + " " + FormatSizes(sizes)
	have, ok := tensor.Product(sizes)
	most, _ := tensor.Product(s.Sizes)
	fits := ok && d == s.DType && len(sizes) == len(s.Sizes)
	switch {
	case s.Dynamism == tensor.Static:
		fits = fits && FormatSizes(sizes) == FormatSizes(s.Sizes)
	case s.Dynamism == tensor.DynamicBound:
		fits = fits && have <= most
	}
	if !fits {
		return mismatch("%s, want %v", given, s)
	}
	return nil
}

// make allocates a tensor in the slot's memory order, within the limit.
func (r *Resolver) make(slot Slot, sizes []int) (*tensor.Tensor, error) {
	t := tensor.Make(slot.DType, sizes, slot.DimOrder, tensor.Static)
	if err := r.take(int64(t.NBytes())); err != nil {
		return nil, err
	}
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	return t, nil
}

// take counts n bytes against the limit.
func (r *Resolver) take(n int64) error {
	if n > r.Limit {
		return &Error{Index: -1, Reason: ErrMemory, Err: fmt.Errorf("%d bytes, %d left of the limit", n, r.Limit)}
	}
	r.Limit -= n
	return nil
}

func (r *Resolver) array(path string) (*npy.Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return npy.Read(f, r.Limit)
}

func (r *Resolver) archive(s *Spec) ([]*npy.Array, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	arrays, err := npy.ReadZip(f, info.Size(), r.Limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	return arrays, nil
}

// layOut copies an array, which is in logical order, into the slot's memory order.
func (r *Resolver) layOut(a *npy.Array, slot Slot) (*tensor.Tensor, error) {
	if !a.Holds(slot.DType) {
		return nil, mismatch("%s %s, want %v", a.TypeName(), FormatSizes(a.Sizes), slot)
	}
	if err := slot.accepts(slot.DType, a.Sizes); err != nil {
		return nil, err
	}
	t, err := r.make(slot, a.Sizes)
	if err != nil {
		return nil, err
	}
	at := 0
	npy.Walk(t.Sizes, t.Strides, func(offset int) {
		copy(t.Data[offset*a.Elem:], a.Data[at:at+a.Elem])
		at += a.Elem
	})
	return t, nil
}

// maxPicture bounds a picture's file.
const maxPicture = 256 << 20

func (r *Resolver) picture(index int, s *Spec, slot Slot) (*tensor.Tensor, error) {
	file, err := readFile(s.Path, maxPicture)
	if err != nil {
		return nil, err
	}
	want := picture.Want{DType: slot.DType, Sizes: slot.Sizes, DimOrder: slot.DimOrder, Dynamic: slot.Dynamism != tensor.Static}
	t, applied, err := picture.Tensor(file, s.Recipe, want)
	if errors.Is(err, picture.ErrShape) {
		return nil, mismatch("%w, want %v", err, slot)
	}
	if err != nil {
		return nil, err
	}
	r.Say("input %d: %s: %s", index, s.Path, applied)
	return t, r.take(int64(t.NBytes()))
}
