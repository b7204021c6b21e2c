package nhwc

import (
	"fmt"
	"testing"
)

// BenchmarkPool compares both ways to pool, by lines and directly; the one that Plan chooses has a star.
func BenchmarkPool(b *testing.B) {
	for _, t := range []struct{ size, kernel, stride, channels int }{
		{56, 3, 1, 64}, {112, 3, 2, 64}, {56, 2, 2, 128}, {7, 7, 7, 512}, {28, 5, 1, 32}, {14, 3, 1, 8}, {35, 3, 2, 288},
	} {
		for _, mean := range []bool{true, false} {
			p := Pool[float32]{Mean: mean, Stop: never{}}
			p.In, p.Kernel, p.Stride = [3]int{1, t.size, t.size}, [3]int{1, t.kernel, t.kernel}, [3]int{1, t.stride, t.stride}
			p.C, p.Dilate = t.channels, [3]int{1, 1, 1}
			for d := range p.Out {
				p.Slide(d, false)
			}
			p.X, p.Y = make([]float32, p.size()), make([]float32, p.Out[1]*p.Out[2]*p.C)
			p.Plan(1)
			p.CountInside()
			chosen, memory := p.byRow, make([]float32, p.Line())
			for _, byRow := range []bool{false, true} {
				name := fmt.Sprintf("%v,mean=%v,lines=%v", t, mean, byRow)
				if byRow == chosen {
					name += "*"
				}
				b.Run(name, func(b *testing.B) {
					p.byRow = byRow
					for b.Loop() {
						for i := range p.Out[1] {
							p.Run(0, memory, i)
						}
					}
				})
			}
		}
	}
}
