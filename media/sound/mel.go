package sound

import (
	"math"
	"slices"
)

// Parameters of the spectrograms of Whisper and of the recognisers that share its pre-processing.
const (
	MelRate   = 16000 // samples per second
	melWindow = 400   // samples of a frame
	MelHop    = 160   // samples between frames
	melBins   = melWindow/2 + 1
	melTop    = 8000 // Hz
)

// Mel computes logarithmic mel spectrograms as Whisper's feature extractor does: frames of 400 samples under a periodic Hann window, every
// 160 samples, Slaney's mel scale from 0 to 8000 Hz. It is not safe for concurrent use.
type Mel struct {
	bins    int
	window  [melWindow]float64
	filters []melFilter
	fft     *transform
	frame   []complex128
	power   [melBins]float64
}

// melFilter are the weights of a bin, from a frequency on.
type melFilter struct {
	first   int
	weights []float64
}

// NewMel returns a spectrogram of a number of bins, 80 or 128 in the models that are known.
func NewMel(bins int) *Mel {
	m := &Mel{bins: bins, filters: melFilters(bins), fft: newTransform(melWindow), frame: make([]complex128, melWindow)}
	for i := range m.window {
		m.window[i] = 0.5 * (1 - math.Cos(2*math.Pi*float64(i)/melWindow))
	}
	return m
}

// Spectrogram writes len(samples)/160 frames to out, which has bins rows of that many elements. Samples before the first and after the last
// are mirrored, and elements far below the maximum are raised, so that all lie between -1.5 and 2 in common recordings.
func (m *Mel) Spectrogram(samples, out []float32) {
	frames := len(samples) / MelHop
	top := math.Inf(-1)
	for t := range frames {
		m.measure(samples, t*MelHop-melWindow/2)
		for b := range m.filters {
			f, sum := &m.filters[b], 0.0
			for k, w := range f.weights {
				sum += w * m.power[f.first+k]
			}
			v := math.Log10(max(sum, 1e-10))
			out[b*frames+t] = float32(v)
			top = max(top, v)
		}
	}
	floor := float32(top - 8)
	for i, v := range out[:m.bins*frames] {
		out[i] = (max(v, floor) + 4) / 4
	}
}

// measure computes the powers of the frequencies of a frame that begins at a sample.
func (m *Mel) measure(samples []float32, at int) {
	n := len(samples)
	for i := range m.frame {
		k := at + i
		if k < 0 {
			k = -k
		}
		if k >= n {
			k = 2*n - 2 - k
		}
		v := 0.0
		if k >= 0 && k < n { // a recording shorter than half a frame is mirrored once
			v = float64(samples[k])
		}
		m.frame[i] = complex(v*m.window[i], 0)
	}
	spectrum := m.fft.run(m.frame)
	for k := range m.power {
		re, im := real(spectrum[k]), imag(spectrum[k])
		m.power[k] = re*re + im*im
	}
}

// melFilters returns triangles of equal width on Slaney's scale, each with an area of 1.
func melFilters(bins int) []melFilter {
	edges := make([]float64, bins+2)
	for i := range edges {
		edges[i] = melHertz(hertzMel(melTop) * float64(i) / float64(bins+1))
	}
	filters := make([]melFilter, bins)
	for b := range filters {
		lo, mid, hi := edges[b], edges[b+1], edges[b+2]
		f := &filters[b]
		for k := range melBins {
			hz := float64(k) * MelRate / melWindow
			w := min((hz-lo)/(mid-lo), (hi-hz)/(hi-mid))
			if w <= 0 {
				continue
			}
			if f.weights == nil {
				f.first = k
			}
			f.weights = append(f.weights, float64(float32(w*2/(hi-lo))))
		}
	}
	return filters
}

// hertzMel and melHertz convert frequencies: linear below 1000 Hz, logarithmic above.
func hertzMel(hz float64) float64 {
	if hz < 1000 {
		return hz * 3 / 200
	}
	return 15 + math.Log(hz/1000)*27/math.Log(6.4)
}

func melHertz(mel float64) float64 {
	if mel < 15 {
		return mel * 200 / 3
	}
	return 1000 * math.Exp((mel-15)*math.Log(6.4)/27)
}

// transform is a Fourier transform of a fixed length, whose prime factors are small.
type transform struct {
	factors []int
	roots   []complex128 // exp(-2πik/n)
	a, b    []complex128
}

func newTransform(n int) *transform {
	t := &transform{roots: make([]complex128, n), a: make([]complex128, n), b: make([]complex128, n)}
	for k := range t.roots {
		sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		t.roots[k] = complex(cos, sin)
	}
	for p := 2; n > 1; p++ {
		for ; n%p == 0; n /= p {
			t.factors = append(t.factors, p)
		}
	}
	return t
}

// run returns the transform of x, valid until the next call (Stockham's algorithm: each factor p turns groups of n/p into p times as many
// frequencies of a p-th of the length).
func (t *transform) run(x []complex128) []complex128 {
	n := len(t.roots)
	from, to := t.a, t.b
	copy(from, x)
	done := 1 // frequencies per group
	for _, p := range t.factors {
		groups := n / (done * p)
		for g := range groups {
			for k := range done {
				for q := range p {
					var sum complex128
					for r := range p {
						sum += from[(g+r*groups)*done+k] * t.roots[(r*(k+q*done)*groups)%n]
					}
					to[(g*p+q)*done+k] = sum
				}
			}
		}
		from, to = to, from
		done *= p
	}
	return slices.Clip(from)
}
