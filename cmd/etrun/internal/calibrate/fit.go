// Package calibrate finds the quantization of an NPU's integers from reference values of
// the same tensor.
package calibrate

import (
	"errors"
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Fit is a scale and a zero point, and the error of the dequantized integers against the
// reference values. Errors are in steps of the scale.
type Fit struct {
	Scale     float64 // representable as float32
	ZeroPoint int64
	Values    int     // number of compared values
	Clipped   int     // number of these at a limit of the integer type whose reference value rounds elsewhere
	Max       float64 // largest error
	RMS       float64 // root mean square error
}

// ErrFit means that the integers do not represent the reference values; match with errors.Is.
var ErrFit = errors.New("reference values do not fit")

// minCorrelation is the minimum correlation of reference values with the integers. Values
// of the float model have more than 0.99, those of another tensor almost none.
const minCorrelation = 0.9

// of fits (q-zero)·scale, for q in stored, to reference values in the same order. stored
// has values of the integer type d.
func of(stored []int32, reference []float64, d tensor.DType) (Fit, error) {
	lo, hi := limits(d)
	m, err := measure(stored, reference, lo, hi)
	if err != nil {
		return Fit{}, err
	}
	slope, r := m.line()
	switch {
	case !(m.qq > 0):
		return Fit{}, fmt.Errorf("%w: the NPU wrote %v everywhere, which determines no scale: use other inputs", ErrFit, m.q)
	case !(r >= minCorrelation):
		return Fit{}, fmt.Errorf("%w: correlation %.3f with the NPU's output, want at least %v", ErrFit, r, minCorrelation)
	}
	zero := math.Floor(m.q - m.y/slope)
	best := Fit{RMS: math.Inf(1)}
	for z := zero; z <= zero+1; z++ {
		scale := m.through(z)
		if z < float64(lo) || z > float64(hi) || !(scale >= smallest) || math.IsInf(float64(float32(scale)), 0) {
			continue
		}
		if f := judge(stored, reference, refine(stored, reference, float32(scale), int32(z)), int32(z), lo, hi); f.RMS < best.RMS {
			best = f
		}
	}
	if math.IsInf(best.RMS, 1) {
		return Fit{}, fmt.Errorf("%w: the best fit is scale %v and zero point %v", ErrFit, slope, zero)
	}
	return best, nil
}

// smallest is the smallest scale: denormal scales have too few bits.
const smallest = 0x1p-126

// limits returns the smallest and the largest value of an integer type.
func limits(d tensor.DType) (lo, hi int32) {
	shift := 8*min(d.Size(), 4) - 1
	return -1 << shift, 1<<shift - 1
}

// moments are sums over pairs of an integer and a reference value: means, and products of
// deviations from them.
type moments struct {
	n, q, y    float64
	qq, qy, yy float64
}

// measure sums over the pairs within the range of the integers, as values at its limits may
// be clipped; over all pairs if nearly all are at the limits.
func measure(stored []int32, reference []float64, lo, hi int32) (m moments, err error) {
	if len(stored) != len(reference) || len(stored) == 0 {
		return m, fmt.Errorf("%w: %d values, want %d", ErrFit, len(reference), len(stored))
	}
	for i, y := range reference {
		if math.IsNaN(y) || math.IsInf(y, 0) {
			return m, fmt.Errorf("%w: element %d is %v", ErrFit, i, y)
		}
	}
	if m = sum(stored, reference, lo+1, hi-1); m.qq == 0 {
		m = sum(stored, reference, lo, hi)
	}
	return m, nil
}

// sum sums over the pairs whose integer is from lo to hi.
func sum(stored []int32, reference []float64, lo, hi int32) (m moments) {
	for i, q := range stored {
		if q >= lo && q <= hi {
			m.n++
			m.q += float64(q)
			m.y += reference[i]
		}
	}
	m.q, m.y = m.q/max(m.n, 1), m.y/max(m.n, 1)
	for i, q := range stored {
		if q >= lo && q <= hi {
			dq, dy := float64(q)-m.q, reference[i]-m.y
			m.qq, m.qy, m.yy = m.qq+dq*dq, m.qy+dq*dy, m.yy+dy*dy
		}
	}
	return m
}

// line returns the slope of the regression line, and the correlation.
func (m *moments) line() (slope, correlation float64) {
	return m.qy / m.qq, m.qy / math.Sqrt(m.qq) / math.Sqrt(m.yy)
}

// through returns the slope of the regression line through zero.
func (m *moments) through(zero float64) float64 {
	d := m.q - zero
	return (m.qy + m.n*d*m.y) / (m.qq + m.n*d*d)
}

// refine returns the float32 near scale that reproduces most reference values exactly:
// values of a quantized model are products of its own scale.
func refine(stored []int32, reference []float64, scale float32, zero int32) float32 {
	const around = 4
	best, most := scale, -1
	s := math.Float32bits(scale)
	for _, step := range [...]int{0, -1, 1, -2, 2, -3, 3, -around, around} {
		candidate := math.Float32frombits(uint32(int64(s) + int64(step)))
		exact := 0
		for i, q := range stored {
			if float64(float32(q-zero)*candidate) == reference[i] {
				exact++
			}
		}
		if exact > most && candidate > 0 && !math.IsInf(float64(candidate), 0) {
			best, most = candidate, exact
		}
	}
	return best
}

// judge computes the error of the reference values.
func judge(stored []int32, reference []float64, scale float32, zero, lo, hi int32) Fit {
	f := Fit{Scale: float64(scale), ZeroPoint: int64(zero), Values: len(stored)}
	var squares float64
	for i, q := range stored {
		e := reference[i]/f.Scale - float64(q-zero)
		if q == lo && e < -0.5 || q == hi && e > 0.5 {
			f.Clipped++
			continue
		}
		f.Max = max(f.Max, math.Abs(e))
		squares += e * e
	}
	f.RMS = math.Sqrt(squares / float64(max(f.Values-f.Clipped, 1)))
	return f
}
