package sound

import "math"

// Parameters of the low-pass filter, as in torchaudio's resample.
const (
	filterWidth = 6    // zero crossings on each side
	rolloff     = 0.99 // of the lower Nyquist frequency
)

// maxTable is the maximum number of weights that are kept: the usual rates have some thousands, rates without a common divisor have millions.
const maxTable = 1 << 18

// Resampled returns the number of samples that Resample makes of n.
func Resampled(n, from, to int) int64 {
	g := gcd(from, to)
	return (int64(n)*int64(to/g) + int64(from/g) - 1) / int64(from/g)
}

// Resample converts samples of one channel from one rate to another with a Hann-windowed sinc filter. The result has [Resampled] samples.
func Resample(samples []float32, from, to int) []float32 {
	if from == to {
		return samples
	}
	f := newFilter(from, to)
	out := make([]float32, Resampled(len(samples), from, to))
	for i := range out {
		first, weights := f.at(i)
		out[i] = product(weights, samples, first)
	}
	return out
}

// product weighs the samples from first on; beyond both ends they are zero.
func product(weights []float64, samples []float32, first int) float32 {
	sum := 0.0
	for k := max(-first, 0); k < min(len(weights), len(samples)-first); k++ {
		sum += weights[k] * float64(samples[first+k])
	}
	return float32(sum)
}

// filter has the weights of the input's samples for each phase: the results repeat after to samples, which are from samples of the input.
type filter struct {
	from, to   int
	base, half float64 // the cutoff in samples per period; half of the filter's width in input samples
	rows       [][]float64
	scratch    []float64 // a row, if all of them are too many
}

func newFilter(from, to int) *filter {
	g := gcd(from, to)
	f := &filter{from: from / g, to: to / g}
	f.base = float64(min(f.from, f.to)) * rolloff
	f.half = filterWidth * float64(f.from) / f.base
	if width := int(2*f.half) + 2; f.to > maxTable/width {
		f.scratch = make([]float64, 0, width)
		return f
	}
	f.rows = make([][]float64, f.to)
	for p := range f.rows {
		f.rows[p] = f.row(p, nil)
	}
	return f
}

// at returns the weights for a sample of the result, and the input's sample that the first of them belongs to.
func (f *filter) at(i int) (first int, weights []float64) {
	p := i % f.to
	first = i/f.to*f.from + f.first(p)
	if f.rows != nil {
		return first, f.rows[p]
	}
	f.scratch = f.row(p, f.scratch[:0])
	return first, f.scratch
}

// first returns the first sample that has a weight in a phase.
func (f *filter) first(p int) int {
	return int(math.Ceil(float64(p)*float64(f.from)/float64(f.to) - f.half))
}

// row appends the weights of a phase.
func (f *filter) row(p int, to []float64) []float64 {
	at := float64(p) * float64(f.from) / float64(f.to)
	for k := f.first(p); float64(k) <= at+f.half; k++ {
		t := (float64(k) - at) * f.base / float64(f.from)
		window := math.Cos(t * math.Pi / filterWidth / 2)
		to = append(to, sinc(t)*window*window*f.base/float64(f.from))
	}
	return to
}

func sinc(t float64) float64 {
	if t == 0 {
		return 1
	}
	return math.Sin(math.Pi*t) / (math.Pi * t)
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
