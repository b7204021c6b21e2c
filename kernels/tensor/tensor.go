package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// MaxUnbound is the default maximum size in bytes of an unbounded tensor, whose sizes come from
// unchecked data. See [Tensor.Limit].
const MaxUnbound = 1 << 30

// MaxRank is the largest supported rank (ExecuTorch's kTensorDimensionLimit).
const MaxRank = 16

// Dynamism describes how a tensor's sizes may change (program.fbs, TensorShapeDynamism).
type Dynamism uint8

// Kinds of shapes.
const (
	Static         Dynamism = 0 // sizes never change
	DynamicBound   Dynamism = 1 // any sizes up to the capacity in elements
	DynamicUnbound Dynamism = 2 // any sizes; memory is allocated as the tensor grows
)

func (d Dynamism) String() string {
	return [...]string{"static", "dynamic (bounded)", "dynamic (unbounded)", "invalid"}[min(d, 3)]
}

// Tensor is a dense array of one element type. It is safe for concurrent use only while it is
// neither resized nor written.
type Tensor struct {
	DType    DType
	Dynamism Dynamism
	Const    bool    // the elements never change: derived data may be cached
	Sizes    []int   // logical sizes, outermost first; read only, use Resize
	Strides  []int   // in elements, per logical dimension; derived from Sizes and DimOrder
	DimOrder []uint8 // permutation: logical dimensions from the outermost in memory to the innermost
	Data     []byte  // exactly NBytes long, aligned to the element size; nil while unbound or empty

	store    []byte // the slice passed to Bind, of which Data is the start
	capacity int    // largest element count that Resize accepts
	budget   *Budget
	reached  int // largest size in bytes that was charged to the budget of a bounded tensor
	changes  uint64
}

// Budget is the number of bytes that a group of tensors may still allocate or, if they are bounded, reach for the first time in memory
// that is reserved for their largest sizes. Released bytes are not added back automatically, because a view may still use them.
type Budget struct {
	Left int64
	More func() int64 // returns what is left when Left is too small, nil for no more
}

// New returns a static, contiguous, zeroed tensor that owns its bytes.
func New(d DType, sizes ...int) *Tensor {
	t := Make(d, sizes, nil, Static)
	t.Bind(AlignedBytes(t.NBytes()))
	return t
}

// Make returns a tensor without memory. A nil dimOrder means contiguous. sizes are the initial
// sizes and, for a DynamicBound tensor, the capacity. sizes and dimOrder are copied; the caller
// must have checked them ([CheckShape]).
func Make(d DType, sizes []int, dimOrder []uint8, dyn Dynamism) *Tensor {
	n := len(sizes)
	dims := make([]int, 2*n)
	t := &Tensor{DType: d, Dynamism: dyn, Sizes: dims[:n:n], Strides: dims[n:]}
	copy(t.Sizes, sizes)
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

// Of returns a static contiguous tensor that uses data without copying it. It panics if the product
// of sizes is not len(data).
func Of[T Element](data []T, sizes ...int) *Tensor {
	t := Make(TypeOf[T](), sizes, nil, Static)
	if t.Numel() != len(data) {
		panic(fmt.Sprintf("tensor.Of: %d elements for sizes %v", len(data), sizes))
	}
	t.Bind(BytesOf(data))
	return t
}

// ContiguousOrder returns the dim order 0, 1, …, rank-1.
func ContiguousOrder(rank int) []uint8 {
	o := make([]uint8, rank)
	for i := range o {
		o[i] = uint8(i)
	}
	return o
}

// Rank returns the number of dimensions; 0 for a scalar tensor.
func (t *Tensor) Rank() int { return len(t.Sizes) }

// Numel returns the current number of elements; 1 for rank 0.
func (t *Tensor) Numel() int {
	n := 1
	for _, s := range t.Sizes {
		n *= s
	}
	return n
}

// NBytes returns the current size in bytes.
func (t *Tensor) NBytes() int { return t.Numel() * t.DType.Size() }

// Capacity returns the largest number of elements that Resize accepts.
func (t *Tensor) Capacity() int { return t.capacity }

// Limit sets the capacity of a tensor that is not static to n elements, but not below the current
// number.
func (t *Tensor) Limit(n int) { t.capacity = max(n, t.Numel()) }

// ChargeTo charges the future growth of a tensor to b: of an unbounded one what it allocates, of a bounded one the bytes beyond its
// largest size so far.
func (t *Tensor) ChargeTo(b *Budget) { t.budget = b }

// Bind sets the tensor's memory to b, which is not copied. b must be aligned to the element size
// and have at least the current size; a bounded tensor does not grow beyond it. Bind(nil) detaches the
// memory.
func (t *Tensor) Bind(b []byte) {
	same := len(b) == len(t.store) && (len(b) == 0 || &b[0] == &t.store[0])
	if same && len(t.Data) == t.NBytes() {
		return
	}
	t.store = b
	t.slice()
}

// Free releases the memory of an unbounded tensor and sets its sizes to 0, so that released memory
// is not read. It does nothing for a scalar tensor.
func (t *Tensor) Free() {
	if t.Dynamism != DynamicUnbound || t.Rank() == 0 {
		return
	}
	clear(t.Sizes)
	t.setStrides()
	t.Bind(nil)
}

// Storage returns the slice passed to Bind.
func (t *Tensor) Storage() []byte { return t.store }

// Changes returns a counter that increases when the tensor is resized or bound. Data derived from
// its sizes and addresses is valid while the counter is unchanged.
func (t *Tensor) Changes() uint64 { return t.changes }

// BindSized is Bind with other sizes, which Resize must accept: the result of a view has the sizes and
// the memory of its call. b must have at least the bytes of these sizes, and limits later calls of
// Resize. It allocates nothing and leaves the tensor as it is if it fails.
func (t *Tensor) BindSized(sizes []int, b []byte) error {
	n, ok := Product(sizes)
	same := slices.Equal(t.Sizes, sizes)
	if !same && !t.accepts(sizes, n, ok) || n*t.DType.Size() > len(b) {
		return t.resizeError(sizes, min(t.capacity, len(b)/t.DType.Size()))
	}
	if b == nil {
		b = noBytes // bound to nothing, not unbound
	}
	if !same {
		copy(t.Sizes, sizes)
		t.setStrides()
		t.changes++
	}
	t.Bind(b)
	return nil
}

var noBytes = []byte{}

// accepts reports whether a tensor may have other sizes, with n elements.
func (t *Tensor) accepts(sizes []int, n int, ok bool) bool {
	return len(sizes) == len(t.Sizes) && t.Dynamism != Static && ok && n <= t.capacity
}

func (t *Tensor) resizeError(sizes []int, capacity int) error {
	return &ResizeError{From: slices.Clone(t.Sizes), To: slices.Clone(sizes), Dynamism: t.Dynamism, Capacity: capacity}
}

// limited is resizeError for growth by n bytes that the budget does not allow.
func (t *Tensor) limited(sizes []int, n int) error {
	left := max(t.budget.Left, 0)
	return &ResizeError{From: slices.Clone(t.Sizes), To: slices.Clone(sizes), Dynamism: t.Dynamism,
		Capacity: (t.reached + int(left)) / t.DType.Size(), Missing: int64(n) - left}
}

func (t *Tensor) slice() {
	t.changes++
	n := t.NBytes()
	if n > len(t.store) {
		t.Data = nil
		return
	}
	t.Data = t.store[:n:n]
}

// Resize changes the sizes as ExecuTorch's resize_tensor does: the rank cannot change, a static
// tensor cannot change at all, and a dynamic one accepts any sizes up to its capacity in elements and,
// if it is bounded, up to the memory that is bound. The memory stays in place with unspecified contents.
// Resize allocates only if an unbounded tensor grows.
func (t *Tensor) Resize(sizes []int) error {
	missing := t.Dynamism == DynamicUnbound && len(t.Data) < t.NBytes() || // freed, or never bound
		t.Dynamism == DynamicBound && t.budget != nil && t.reached < t.NBytes()
	if slices.Equal(t.Sizes, sizes) && !missing {
		return nil
	}
	n, ok := Product(sizes)
	if !t.accepts(sizes, n, ok) {
		return t.resizeError(sizes, t.capacity)
	}
	switch bytes := n * t.DType.Size(); {
	case bytes <= len(t.store):
		if t.Dynamism == DynamicBound && bytes > t.reached && t.budget != nil {
			if !t.budget.spend(int64(bytes - t.reached)) {
				return t.limited(sizes, bytes-t.reached)
			}
			t.reached = bytes
		}
	case t.Dynamism == DynamicUnbound:
		if !t.budget.spend(int64(bytes)) {
			return t.limited(sizes, bytes)
		}
		t.store = AlignedBytes(bytes)
	case t.store != nil:
		return t.resizeError(sizes, len(t.store)/t.DType.Size())
	}
	copy(t.Sizes, sizes)
	t.setStrides()
	t.slice()
	return nil
}

// spend subtracts n bytes and reports whether they were available. A nil budget is unlimited.
func (b *Budget) spend(n int64) bool {
	if b == nil {
		return true
	}
	if n > b.Left && b.More != nil {
		b.Left = b.More()
	}
	if n > b.Left {
		return false
	}
	b.Left -= n
	return true
}

// setStrides computes Strides from Sizes and DimOrder.
func (t *Tensor) setStrides() { t.writeStrides(t.Strides) }

// writeStrides writes the strides that follow from Sizes and DimOrder; a size of 0 counts as 1.
func (t *Tensor) writeStrides(dst []int) {
	stride := 1
	for i := len(t.DimOrder) - 1; i >= 0; i-- {
		d := t.DimOrder[i]
		dst[d] = stride
		stride *= max(t.Sizes[d], 1)
	}
}

// IsContiguous reports whether logical and memory order are the same. Dimensions of size 1 do not
// matter, so a [1,1,H,W] tensor is both contiguous and channels last.
func (t *Tensor) IsContiguous() bool { return t.inOrder(false) }

// IsChannelsLast reports whether the memory order of a tensor of rank 3 to 5 is N, spatial…, C.
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

// FormatSizes formats sizes as 1x3x224x224, and no sizes as "scalar".
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

// ResizeError reports sizes that a tensor does not accept.
type ResizeError struct {
	From, To []int
	Dynamism Dynamism
	Capacity int
	Missing  int64 // bytes by which the growth exceeds the tensor's budget; 0 if that is not the reason
}

func (e *ResizeError) Error() string {
	if e.Dynamism != Static && len(e.From) == len(e.To) {
		return fmt.Sprintf("cannot resize to %s: the tensor is %v with at most %d elements", FormatSizes(e.To), e.Dynamism, e.Capacity)
	}
	return fmt.Sprintf("cannot resize to %s: the tensor is %v with sizes %s", FormatSizes(e.To), e.Dynamism, FormatSizes(e.From))
}

// Product multiplies sizes. ok is false if one is negative or the product of the nonzero ones exceeds MaxInt/16, so
// that the size in bytes of the largest element does not overflow.
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

// Check validates a tensor that another package made: DimOrder and Strides must match Sizes, and
// Data must contain enough bytes.
func (t *Tensor) Check() error {
	if err := CheckShape(t.Sizes, t.DimOrder); err != nil {
		return err
	}
	if !t.DType.Valid() || len(t.DimOrder) != len(t.Sizes) || !t.dense() {
		return fmt.Errorf("%v with dim order %v and strides %v: inconsistent, use Make or New", t, t.DimOrder, t.Strides)
	}
	if n := t.NBytes(); len(t.Data) < n {
		return fmt.Errorf("got %d bytes, want %d", len(t.Data), n)
	}
	return nil
}

// dense reports whether the strides follow from sizes and dim order.
func (t *Tensor) dense() bool {
	var want [MaxRank]int
	t.writeStrides(want[:])
	return slices.Equal(t.Strides, want[:len(t.Sizes)])
}

// CheckShape validates sizes and dimOrder: the rank is at most MaxRank, no size is negative, the
// product does not overflow, and the order is a permutation.
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

// Data returns a tensor's elements in memory order, or nil if T is not the Go type of its DType.
// The slice is valid as long as the tensor's memory.
func Data[T Element](t *Tensor) []T {
	if !Stores[T](t.DType) {
		return nil
	}
	return View[T](t.Data)
}
