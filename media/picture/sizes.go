package picture

import (
	"math"
	"slices"
)

// A program does not declare which sizes below the largest it accepts: all, those that a power of two divides, as after strides, or
// those with one side of the largest size, as for lines of text. Attempts are the sizes for a picture under these assumptions.
const (
	divisors    = 7 // of the sides: 1 to 64
	numAttempts = 3*divisors + 1
)

// sized reports whether the recipe sets a size.
func (r Recipe) sized() bool {
	return r.Short > 0 || r.Long > 0 || r.Height > 0 || r.CropH > 0 || r.Letterbox
}

// tries reports whether the program decides on the size of the picture. Of an input with several pictures, their number varies, and
// the size may well be fixed: a classifier gives wrong answers for others instead of an error.
func (r Recipe) tries(f frame, want Want) bool {
	return want.Dynamic && !r.sized() && (f.n < 0 || want.Sizes[f.n] == 1)
}

// attempt returns the size of the input for attempt n. whole is false if its sides are so different from the picture's that a part
// is cut off.
func (f frame) attempt(p header, n int) (h, w int, whole bool) {
	by := 1 << (n % divisors)
	switch n / divisors {
	case 0:
		h, w = f.fit(p, by)
	case 1:
		h, w = f.height, divisible(divide(p.w*f.height, p.h), f.width, by)
	case 2:
		h, w = divisible(divide(p.h*f.width, p.w), f.height, by), f.width
	default:
		h, w = f.height, f.width
	}
	return h, w, stretch(p, h, w) <= 1
}

// fit returns the nearest size that is not larger than the picture and the input, or larger if that keeps its sides better.
func (f frame) fit(p header, by int) (h, w int) {
	h, w = p.h, p.w
	if h > f.height {
		h, w = f.height, divide(p.w*f.height, p.h)
	}
	if w > f.width {
		h, w = divide(p.h*f.width, p.w), f.width
	}
	if by == 1 {
		return h, w
	}
	const around = 16 // multiples
	best, near := math.Inf(1), h
	for tall := max(near/by-around, 1) * by; tall <= max(min(near+around*by, f.height), by); tall += by {
		wide := divisible(divide(p.w*tall, p.h), f.width, by)
		worse := max(stretch(p, tall, wide), 1) + math.Abs(float64(tall-near))/maxPixels
		if worse < best {
			best, h, w = worse, min(tall, f.height), wide
		}
	}
	return h, w
}

// stretch returns by how much the sides' ratio differs from the picture's, where 1 is a quarter.
func stretch(p header, h, w int) float64 {
	ratio := float64(h) * float64(p.w) / (float64(w) * float64(p.h))
	return 4 * (1 - min(ratio, 1/ratio))
}

// divide rounds to the nearest integer, at least 1.
func divide(n, by int) int { return max((n+by/2)/by, 1) }

// divisible returns the nearest multiple up to most, and most if there is none.
func divisible(n, most, by int) int {
	n = max(divide(n, by)*by, by)
	if n <= most {
		return n
	}
	if n = most / by * by; n > 0 {
		return n
	}
	return most
}

// attempts returns those with different sizes: near the picture's, then others that stretch it hardly, or a little, and at last those
// that cut a part off.
func (f frame) attempts(p header) (list []int) {
	var tried [][2]int
	for rank := range 4 {
		for n := range numAttempts {
			h, w, _ := f.attempt(p, n)
			if f.rank(p, n) == rank && !slices.Contains(tried, [2]int{h, w}) {
				tried, list = append(tried, [2]int{h, w}), append(list, n)
			}
		}
	}
	return list
}

func (f frame) rank(p header, n int) int {
	const hardly = 0.1
	h, w, whole := f.attempt(p, n)
	nearH, nearW := f.fit(p, 1)
	by := 1 << (n % divisors)
	switch {
	case n == 0:
		return 0
	case !whole:
		return 3
	case n < divisors && max(h-nearH, nearH-h, w-nearW, nearW-w) < by:
		return 0
	case stretch(p, h, w) < hardly:
		return 1
	}
	return 2
}

// next returns the attempt after that of want, -1 for none.
func (r Recipe) next(p header, f frame, want Want) int {
	if r.tries(f, want) {
		list := f.attempts(p)
		if i := slices.Index(list, want.Attempt) + 1; i < len(list) {
			return list[i]
		}
	}
	return -1
}
