package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// MaxUnbound is the number of bytes that an unbounded tensor grows to unless
// [Tensor.Limit] says otherwise: its sizes come from data that nobody has checked.
const MaxUnbound = 1 << 30

// MaxRank is the largest number of dimensions (ExecuTorch's kTensorDimensionLimit).
const MaxRank = 16

// Dynamism says how a tensor's sizes may change (program.fbs, TensorShapeDynamism).
type Dynamism uint8

// The three kinds of shape.
const (
	Static         Dynamism = 0 // sizes never change
	DynamicBound   Dynamism = 1 // any sizes whose element count stays within the capacity
	DynamicUnbound Dynamism = 2 // any sizes; the bytes are allocated at each growth
)

func (d Dynamism) String() string {
	return [...]string{"static", "dynamic (bounded)", "dynamic (unbounded)", "invalid"}[min(d, 3)]
}

// Tensor is a dense array of one element type. It is not safe for concurrent use
// while it is resized or written.
type Tensor struct {
	DType    DType
	Dynamism Dynamism
	Const    bool    // the bytes never change while the tensor lives: derived forms may be kept
	Sizes    []int   // logical sizes, outermost first; read only, use Resize
	Strides  []int   // in elements, per logical dimension; derived from Sizes and DimOrder
	DimOrder []uint8 // permutation: logical dimensions from the outermost in memory to the innermost
	Data     []byte  // exactly NBytes long, aligned to the element size; nil while unbound or empty

	store    []byte // the bytes that Data is cut from
	capacity int    // largest element count that Resize accepts
	budget   *Budget
	changes  uint64
}

// Budget is the bytes that unbounded tensors may still allocate together. Bytes that
// are given up do not come back by themselves: a view may hold them.
type Budget struct{ Left int64 }

// New returns a static, contiguous, zeroed tensor that owns its bytes.
func New(d DType, sizes ...int) *Tensor {
	t := Make(d, sizes, nil, Static)
	t.Bind(AlignedBytes(t.NBytes()))
	return t
}

// Make returns a tensor without bytes. A nil dimOrder means contiguous. sizes are
// its initial sizes and, where it is DynamicBound, its capacity. sizes and dimOrder
// are copied; the caller has checked them ([CheckShape]).
func Make(d DType, sizes []int, dimOrder []uint8, dyn Dynamism) *Tensor {
	t := &Tensor{DType: d, Dynamism: dyn, Sizes: slices.Clone(sizes), Strides: make([]int, len(sizes))}
	t.DimOrder = slices.Clone(dimOrder)
	if dimOrder == nil {
		t.DimOrder = ContiguousOrder(len(sizes))
	}
	t.capacity = t.Numel()
	if dyn == DynamicUnbound {
		t.capacity = max(t.capacity, MaxUnbound/max(d.Size(), 1))
	}
	t.setStrides()
	return t
}

// Of wraps data, which is not copied, as a static contiguous tensor. It panics
// where the sizes' product is not len(data): a mistake in the caller's program.
func Of[T Element](data []T, sizes ...int) *Tensor {
	t := Make(TypeOf[T](), sizes, nil, Static)
	if t.Numel() != len(data) {
		panic(fmt.Sprintf("tensor.Of: %d elements for sizes %v", len(data), sizes))
	}
	t.Bind(BytesOf(data))
	return t
}

// ContiguousOrder is the dim order 0, 1, …, rank-1.
func ContiguousOrder(rank int) []uint8 {
	o := make([]uint8, rank)
	for i := range o {
		o[i] = uint8(i)
	}
	return o
}

// Rank is the number of dimensions; 0 for a scalar tensor.
func (t *Tensor) Rank() int { return len(t.Sizes) }

// Numel is the current number of elements; 1 for rank 0.
func (t *Tensor) Numel() int {
	n := 1
	for _, s := range t.Sizes {
		n *= s
	}
	return n
}

// NBytes is the current number of bytes.
func (t *Tensor) NBytes() int { return t.Numel() * t.DType.Size() }

// Capacity is the largest number of elements that Resize accepts.
func (t *Tensor) Capacity() int { return t.capacity }

// Limit sets the capacity of a tensor that is not static to n elements, which must
// not be fewer than it has.
func (t *Tensor) Limit(n int) { t.capacity = max(n, t.Numel()) }

// ChargeTo makes an unbounded tensor take what it grows by from b.
func (t *Tensor) ChargeTo(b *Budget) { t.budget = b }

// Bind gives the tensor its bytes: at least the current size, and for a bound
// tensor at least the capacity if it is ever to grow. b is kept, not copied, and
// must be aligned to the element size. Bind(nil) takes the bytes away.
func (t *Tensor) Bind(b []byte) {
	same := len(b) == len(t.store) && (len(b) == 0 || &b[0] == &t.store[0])
	if same && len(t.Data) == t.NBytes() {
		return
	}
	t.store = b
	t.cut()
}

// Free gives up the bytes of an unbounded tensor; its sizes become 0, so that
// nobody reads what is gone. A scalar tensor keeps its element.
func (t *Tensor) Free() {
	if t.Dynamism != DynamicUnbound || t.Rank() == 0 {
		return
	}
	clear(t.Sizes)
	t.setStrides()
	t.Bind(nil)
}

// Storage is the whole slice given to Bind.
func (t *Tensor) Storage() []byte { return t.store }

// Changes counts how often the tensor was resized or got other bytes: what was
// derived from its sizes and addresses holds while the count stays.
func (t *Tensor) Changes() uint64 { return t.changes }

func (t *Tensor) cut() {
	t.changes++
	n := t.NBytes()
	if n > len(t.store) {
		t.Data = nil
		return
	}
	t.Data = t.store[:n:n]
}

// Resize changes the logical sizes by the rules of the tensor's dynamism
// (ExecuTorch resize_tensor): the rank stays, a static tensor stays as it is, a
// dynamic one may take any sizes whose element count fits the capacity. Bytes keep
// their place; their contents are then unspecified. It allocates only for an
// unbounded tensor that grows.
func (t *Tensor) Resize(sizes []int) error {
	missing := t.Dynamism == DynamicUnbound && len(t.Data) < t.NBytes() // freed, or never bound
	if slices.Equal(t.Sizes, sizes) && !missing {
		return nil
	}
	n, ok := Product(sizes)
	if len(sizes) != len(t.Sizes) || t.Dynamism == Static || !ok || n > t.capacity {
		return &ResizeError{From: slices.Clone(t.Sizes), To: slices.Clone(sizes), Dynamism: t.Dynamism, Capacity: t.capacity}
	}
	if bytes := n * t.DType.Size(); t.Dynamism == DynamicUnbound && bytes > len(t.store) {
		if !t.budget.take(int64(bytes)) {
			return &ResizeError{From: slices.Clone(t.Sizes), To: slices.Clone(sizes), Dynamism: t.Dynamism, Capacity: int(t.budget.Left) / t.DType.Size()}
		}
		t.store = AlignedBytes(bytes)
	}
	copy(t.Sizes, sizes)
	t.setStrides()
	t.cut()
	return nil
}

// take reports whether n bytes were left; there is no end of them without a budget.
func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if n > b.Left {
		return false
	}
	b.Left -= n
	return true
}

// setStrides derives Strides from Sizes and DimOrder; a size of 0 counts as 1.
func (t *Tensor) setStrides() {
	stride := 1
	for i := len(t.DimOrder) - 1; i >= 0; i-- {
		d := t.DimOrder[i]
		t.Strides[d] = stride
		stride *= max(t.Sizes[d], 1)
	}
}

// IsContiguous reports whether logical and memory order agree. Dimensions of size
// 1 do not count, so a [1,1,H,W] tensor is contiguous in either usual order.
func (t *Tensor) IsContiguous() bool { return t.inOrder(false) }

// IsChannelsLast reports the memory order N, spatial…, C for rank 3 to 5.
func (t *Tensor) IsChannelsLast() bool { return t.Rank() >= 3 && t.Rank() <= 5 && t.inOrder(true) }

func (t *Tensor) inOrder(channelsLast bool) bool {
	want := 1
	r := t.Rank()
	for i := r - 1; i >= 0; i-- {
		d := i
		if channelsLast && i > 0 {
			d = i%(r-1) + 1 // memory order 0, 2, …, r-1, 1
			if i == r-1 {
				d = 1
			}
		}
		if t.Sizes[d] != 1 && t.Strides[d] != want {
			return false
		}
		want *= max(t.Sizes[d], 1)
	}
	return true
}

func (t *Tensor) String() string { return t.DType.String() + " " + FormatSizes(t.Sizes) }

// FormatSizes writes sizes as 1x3x224x224; those of a tensor of one element without
// dimensions are "scalar".
func FormatSizes(sizes []int) string {
	if len(sizes) == 0 {
		return "scalar"
	}
	text := make([]byte, 0, 24)
	for i, n := range sizes {
		if i > 0 {
			text = append(text, 'x')
		}
		text = strconv.AppendInt(text, int64(n), 10)
	}
	return string(text)
}

// ResizeError reports sizes that a tensor cannot take.
type ResizeError struct {
	From, To []int
	Dynamism Dynamism
	Capacity int
}

func (e *ResizeError) Error() string {
	if e.Dynamism != Static && len(e.From) == len(e.To) {
		return fmt.Sprintf("resize to %v: the tensor is %v of at most %d elements", e.To, e.Dynamism, e.Capacity)
	}
	return fmt.Sprintf("resize to %v: the tensor is %v %v", e.To, e.Dynamism, e.From)
}

// Product multiplies sizes; ok is false where one is negative or the product of the
// non-zero ones leaves int/16, which leaves room for the widest element.
func Product(sizes []int) (n int, ok bool) {
	p, zero := uint64(1), false
	for _, s := range sizes {
		if s < 0 {
			return 0, false
		}
		if s == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(p, uint64(s))
		if hi != 0 || lo > math.MaxInt/16 {
			return 0, false
		}
		p = lo
	}
	if zero {
		return 0, true
	}
	return int(p), true
}

// Check reports why the fields do not go together, for a tensor that somebody else made:
// DimOrder and Strides that do not belong to Sizes, or fewer bytes than Sizes ask for.
func (t *Tensor) Check() error {
	if err := CheckShape(t.Sizes, t.DimOrder); err != nil {
		return err
	}
	if !t.DType.Valid() || len(t.DimOrder) != len(t.Sizes) || !t.dense() {
		return fmt.Errorf("%v%v with dim order %v and strides %v: not made by this package", t.DType, t.Sizes, t.DimOrder, t.Strides)
	}
	if n := t.NBytes(); len(t.Data) < n {
		return fmt.Errorf("%d bytes, want %d", len(t.Data), n)
	}
	return nil
}

// dense reports strides that follow from sizes and dim order.
func (t *Tensor) dense() bool {
	if len(t.Strides) != len(t.Sizes) {
		return false
	}
	stride := 1
	for i := len(t.DimOrder) - 1; i >= 0; i-- {
		d := t.DimOrder[i]
		if t.Strides[d] != stride {
			return false
		}
		stride *= max(t.Sizes[d], 1)
	}
	return true
}

// CheckShape reports why sizes and dimOrder cannot be a tensor's: a rank above
// MaxRank, a negative size, a product too large, or an order that is no permutation.
func CheckShape(sizes []int, dimOrder []uint8) error {
	if len(sizes) > MaxRank {
		return fmt.Errorf("rank %d, at most %d", len(sizes), MaxRank)
	}
	if _, ok := Product(sizes); !ok {
		return fmt.Errorf("sizes %v: negative or too large", sizes)
	}
	if dimOrder == nil {
		return nil
	}
	if len(dimOrder) != len(sizes) {
		return fmt.Errorf("dim order %v for rank %d", dimOrder, len(sizes))
	}
	var seen [MaxRank]bool
	for _, d := range dimOrder {
		if int(d) >= len(sizes) || seen[d] {
			return fmt.Errorf("dim order %v is not a permutation", dimOrder)
		}
		seen[d] = true
	}
	return nil
}
