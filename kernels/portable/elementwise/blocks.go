package elementwise

import (
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Blocks end where rows of a broadcast operand do, so that it is read in place, expanded once for many blocks, or
// read as one number for each row.

// maxRows is the largest block, in elements, of a kernel that reads rows of the tensors' own bytes.
const maxRows = 16 << 10

// cut determines the sizes of blocks.
func (l *loop[C]) cut() {
	l.step, l.span, l.row = l.n, 0, 0 // n, not the bytes of out: a step of 0 would never end
	if l.direct {
		return
	}
	l.step = blockLen[C]()
	if l.byRows() {
		return
	}
	for i := range l.in[:maxIn] {
		o := &l.in[i]
		if o.layout != gathered || o.strides[0] != 1 {
			continue
		}
		switch row := o.sizes[0]; {
		case row > l.step:
			l.span = row
		case o.strides[1] == 0:
			l.span = row * o.sizes[1]
			l.step -= l.step % row
		default:
			continue
		}
		return
	}
}

// byRows lets the kernel for rows compute, if there is one and b is rowwise.
func (l *loop[C]) byRows() bool {
	if l.rows == nil {
		return false
	}
	a, b := &l.in[0], &l.in[1]
	if l.commutes && a.layout == rowwise && b.layout != rowwise {
		*a, *b = *b, *a
		l.load[0], l.load[1] = l.load[1], l.load[0]
	}
	if b.layout != rowwise {
		return false
	}
	l.kernel, l.row, l.span = l.rows, b.run, l.n
	switch {
	case a.layout == dense && l.load[0] == nil && l.store == nil:
		l.step = l.row * max(1, min(maxRows/l.row, l.step))
	case l.row > l.step:
		l.span = l.row
	default:
		l.step -= l.step % l.row
	}
	return true
}

// next returns the size of the block at element i of those up to hi.
func (l *loop[C]) next(i, hi int) int {
	n := min(l.step, hi-i)
	if l.span == 0 {
		return n
	}
	at := i % l.span
	n = min(n, l.step-at%l.step, l.span-at)
	if l.row == 0 {
		return n
	}
	if part := i % l.row; part > 0 {
		return min(n, l.row-part)
	}
	if n > l.row {
		n -= n % l.row
	}
	return n
}

// walk returns the next n elements of a gathered operand, or of a rowwise one's rows.
func (w *worker[C]) walk(l *loop[C], at, n int) []C {
	o, load := &l.in[at], l.load[at]
	w.filled[at] = 0
	src, whole := w.cursors[at].run(o, n)
	switch {
	case whole && load == nil:
		return tensor.View[C](src)
	case whole:
		load(w.buf[at][:n], src)
	case load == nil:
		w.cursors[at].gather(o, tensor.BytesOf(w.buf[at]), n)
	default:
		w.cursors[at].gather(o, w.raw, n)
		load(w.buf[at][:n], w.raw)
	}
	return w.buf[at][:n]
}

// again lets the buffer hold the next n elements of a gathered operand, if they are one row several times.
func (w *worker[C]) again(l *loop[C], at, n int) bool {
	o, c := &l.in[at], &w.cursors[at]
	row, from, times := o.sizes[0], c.at, c.repeats(o, n)
	if times < 2 || times*row != n || o.strides[0] != 1 {
		return false
	}
	if w.filled[at] < n || w.held[at] != from {
		buf := w.buf[at][:n]
		if src := o.data[from*o.size : (from+row)*o.size]; l.load[at] == nil {
			copy(buf, tensor.View[C](src))
		} else {
			l.load[at](buf[:row], src)
		}
		strided.Repeat(buf, row)
		w.filled[at], w.held[at] = n, from
	}
	c.advance(o, 1, times)
	return true
}

// spread returns elements i to i+n of a rowwise operand, or one for each row if the kernel reads it so.
func (w *worker[C]) spread(l *loop[C], at, i, n int) []C {
	o := &l.in[at]
	row := i / o.run
	rows := (i+n-1)/o.run - row + 1
	w.cursors[at].seek(o, row)
	values := w.walk(l, at, rows)
	if l.row > 0 && at == 1 {
		w.run = min(l.row, n)
		return values
	}
	buf, start := w.buf[at][:n], row*o.run-i
	for r := rows - 1; r >= 0; r-- { // backwards: buf may hold the values
		from := start + r*o.run
		strided.Fill(buf[max(from, 0):min(from+o.run, n)], values[r])
	}
	return buf
}
