package elementwise

import (
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// blockBytes is the size of the block that is converted and computed at a time, so that the buffers of a worker stay
// in the first-level cache.
const blockBytes = 4096

// additionCost is the cost of a float32 addition in picoseconds.
const additionCost = 150

// compute is a type that kernels calculate in: complex128 for complex tensors, int64 for uint32 and integers of 64
// bits, int32 for other integers.
type compute interface {
	float32 | float64 | int32 | int64 | complex128
}

// block contains the operands of a kernel: slices of one length, and the call's numbers.
type block[C compute] struct {
	out     []C     // result, written whole
	test    []uint8 // result of a kernel that answers a question: 0 or 1
	a, b, c []C     // operands in the schema's order
	run     int     // length of the rows that b has one element for each of, see table.rows32
	mask    []uint8 // operand that selects: 0 or not
	num     [3]C    // numbers: alpha, bounds, a width
	fault   bool    // set where an element cannot be computed: an integer divided by 0
}

// kernel computes one block.
type kernel[C compute] func(k *block[C])

// Operands of a loop: up to three that are converted to the compute type, and one
// mask of single bytes that is not.
const (
	maxIn  = 3
	maskIn = maxIn
)

// loop is one execution of a kernel over whole tensors: the state of the instruction, and the body of its parallel
// loop.
type loop[C compute] struct {
	in       [maxIn + 1]operand
	load     [maxIn]func(dst []C, src []byte) // nil where the operand is stored as C
	out      []byte
	outType  tensor.DType
	outSize  int
	store    func(dst []byte, src []C) // nil where the result is stored as C
	test     bool                      // the kernel writes block.test
	direct   bool                      // the kernel works on the tensors' own bytes
	kernel   kernel[C]                 // nil to convert only
	rows     kernel[C]                 // for a rowwise b, nil if there is none
	commutes bool                      // a and b may be exchanged
	conv     *converter[C]
	into     bool   // the operand is converted right into the result
	n        int    // elements of the result
	grain    int    // elements of a range
	divisor  int    // argument to blame for a fault
	loaded   bool   // the one worker's block is the whole of the tensors
	step     int    // elements at a time, see next
	span     int    // a block ends at multiples of it, if it is not 0
	row      int    // if not 0, a block has whole rows of this length or is part of one
	scratch  []byte // of all workers, nil for a direct loop
	workers  []worker[C]
	used     []worker[C] // those that this execution may use
}

// worker is the state of one thread of a loop.
type worker[C compute] struct {
	block[C]
	cursors [maxIn + 1]cursor
	buf     [maxIn + 1][]C // converted operands, and the result before its conversion
	raw     []byte         // gathered elements before their conversion
	bits    [2][]uint8     // a gathered mask, and a test's result before its conversion
	filled  [maxIn + 1]int // elements of buf that already hold a single operand, or a repeated row
	held    [maxIn + 1]int // offset of that row
}

// workerBytes returns the size of a worker's scratch memory.
func workerBytes[C compute]() int { return (maxIn+1)*blockBytes + blockLen[C]()*(16+2) }

func blockLen[C compute]() int { return blockBytes / sizeOf[C]() }

func sizeOf[C compute]() int {
	var c [1]C
	return len(tensor.BytesOf(c[:]))
}

// prepare assigns the worker's buffers and seeks to element lo.
func (w *worker[C]) prepare(l *loop[C], mem []byte, lo int) {
	for i := range w.buf {
		w.buf[i], mem = tensor.View[C](mem[:blockBytes]), mem[blockBytes:]
		w.filled[i] = 0
	}
	n := blockLen[C]()
	w.raw, mem = mem[:16*n], mem[16*n:]
	w.bits[0], w.bits[1] = mem[:n], mem[n:2*n]
	for i := range l.in {
		if l.in[i].layout == gathered {
			w.cursors[i].seek(&l.in[i], lo)
		}
	}
}

// Range computes the elements lo to hi of the result's memory.
func (l *loop[C]) Range(id, lo, hi int) {
	w := &l.workers[id]
	if l.scratch != nil {
		size := workerBytes[C]()
		w.prepare(l, l.scratch[id*size:(id+1)*size], lo)
	}
	for i, n := lo, 0; i < hi; i += n {
		n = l.next(i, hi)
		if l.into {
			w.buf[0] = tensor.View[C](l.out[i*l.outSize : (i+n)*l.outSize])
		}
		w.a = w.fetch(l, 0, i, n)
		w.b = w.fetch(l, 1, i, n)
		w.c = w.fetch(l, 2, i, n)
		w.mask = w.fetchMask(l, i, n)
		w.compute(l, i, n)
	}
}

// compute runs the kernel and stores its result as the elements i to i+n.
func (w *worker[C]) compute(l *loop[C], i, n int) {
	dst := l.out[i*l.outSize : (i+n)*l.outSize]
	switch {
	case l.test && l.outType == tensor.Bool:
		w.test = dst
		l.kernel(&w.block)
	case l.test:
		w.test = w.bits[1][:n]
		l.kernel(&w.block)
		l.storeAnswers(dst, w.buf[maxIn][:n], w.test)
	case l.kernel == nil && l.store == nil:
		copy(tensor.View[C](dst), w.a)
	case l.kernel == nil:
		l.store(dst, w.a)
	case l.store == nil:
		w.out = tensor.View[C](dst)
		l.kernel(&w.block)
	default:
		w.out = w.buf[maxIn][:n]
		l.kernel(&w.block)
		l.store(dst, w.out)
	}
}

// storeAnswers stores a test's result as numbers, by way of buf.
func (l *loop[C]) storeAnswers(dst []byte, buf []C, answers []uint8) {
	if l.store == nil {
		buf = tensor.View[C](dst)
	}
	l.conv.load[tensor.Bool](buf, answers)
	if l.store != nil {
		l.store(dst, buf)
	}
}

// fetch returns elements i to i+n of an operand in the compute type: in place if they are stored as such, else in a
// buffer.
func (w *worker[C]) fetch(l *loop[C], at, i, n int) []C {
	o, load := &l.in[at], l.load[at]
	switch o.layout {
	case dense:
		src := o.data[i*o.size : (i+n)*o.size]
		if load == nil {
			return tensor.View[C](src)
		}
		load(w.buf[at][:n], src)
	case single:
		w.fill(o, load, at, n)
	case rowwise:
		return w.spread(l, at, i, n)
	case gathered:
		if !w.again(l, at, n) {
			return w.walk(l, at, n)
		}
	default:
		return nil
	}
	return w.buf[at][:n]
}

// fill fills the first n elements of a buffer with an operand of one element.
func (w *worker[C]) fill(o *operand, load func([]C, []byte), at, n int) {
	if w.filled[at] >= n {
		return
	}
	buf := w.buf[at][:n]
	switch {
	case o.data == nil:
		buf[0] = w.num[operandNum]
	case load == nil:
		buf[0] = tensor.View[C](o.data)[0]
	default:
		load(buf[:1], o.data)
	}
	strided.Fill(buf[1:], buf[0])
	w.filled[at] = n
}

func (w *worker[C]) fetchMask(l *loop[C], i, n int) []uint8 {
	o, buf := &l.in[maskIn], w.bits[0]
	switch o.layout {
	case dense:
		return o.data[i : i+n]
	case single:
		if w.filled[maskIn] < n {
			strided.Fill(buf[:n], o.data[0])
			w.filled[maskIn] = n
		}
	case gathered:
		if src, whole := w.cursors[maskIn].run(o, n); whole {
			return src
		}
		w.cursors[maskIn].gather(o, buf, n)
	default:
		return nil
	}
	return buf[:n]
}
