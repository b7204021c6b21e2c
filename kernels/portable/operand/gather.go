package operand

import "github.com/etrun-go/etrun/kernels/tensor"

// strided is a view of an array: n sizes, outermost first, and strides in elements.
type strided struct {
	size, stride [tensor.MaxRank]int
	n            int
}

// merge drops dimensions of size 1 and joins those that one stride walks through.
func (g *strided) merge() {
	n := 0
	for i := range g.n {
		if g.size[i] == 1 {
			continue
		}
		if n > 0 && g.stride[n-1] == g.stride[i]*g.size[i] {
			g.size[n-1] *= g.size[i]
			g.stride[n-1] = g.stride[i]
			continue
		}
		g.size[n], g.stride[n] = g.size[i], g.stride[i]
		n++
	}
	g.n = n
}

// gather makes dst, which is dense, the elements of the view g of src. No size is 0.
func gather[T tensor.Element](dst, src []T, g *strided) {
	g.merge()
	rows, cols, rs, cs := 1, 1, 0, 0
	if g.n >= 1 {
		cols, cs = g.size[g.n-1], g.stride[g.n-1]
	}
	if g.n >= 2 {
		rows, rs = g.size[g.n-2], g.stride[g.n-2]
	}
	var at [tensor.MaxRank]int
	outer := max(g.n-2, 0)
	for from := 0; ; {
		plane(dst[:rows*cols], src[from:], rows, cols, rs, cs)
		dst = dst[rows*cols:]
		d := outer - 1
		for ; d >= 0; d-- {
			at[d]++
			from += g.stride[d]
			if at[d] < g.size[d] {
				break
			}
			from -= at[d] * g.stride[d]
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// plane gathers rows of cols elements. It goes down all rows of 64 columns before
// the next 64, so that lines of src serve several rows.
func plane[T tensor.Element](dst, src []T, rows, cols, rs, cs int) {
	const width = 64
	for c0 := 0; c0 < cols; c0 += width {
		n := min(width, cols-c0)
		for r := range rows {
			d, s := dst[r*cols+c0:][:n], src[r*rs+c0*cs:]
			for i := range d {
				d[i] = s[i*cs]
			}
		}
	}
}

// Transpose makes dst [cols, rows] of src [rows, cols], both dense.
func Transpose[T tensor.Element](dst, src []T, rows, cols int) {
	if len(src) > 0 {
		plane(dst, src, cols, rows, 1, cols)
	}
}
