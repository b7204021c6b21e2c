package wav

import "math"

// Parameters of the low-pass filter, as in torchaudio's resample.
const (
	filterWidth = 6    // zero crossings on each side
	rolloff     = 0.99 // of the lower Nyquist frequency
)

// Resample converts samples of one channel from one rate to another with a Hann-windowed
// sinc filter. It returns ceil(len·to/from) samples.
func Resample(samples []float32, from, to int) []float32 {
	if from == to {
		return samples
	}
	g := gcd(from, to)
	from, to = from/g, to/g
	base := float64(min(from, to)) * rolloff
	half := filterWidth * float64(from) / base // half width of the filter in input samples
	n := (int64(len(samples))*int64(to) + int64(from) - 1) / int64(from)
	out := make([]float32, n)
	for i := range out {
		at := float64(int64(i)%int64(to))*float64(from)/float64(to) + float64(int64(i)/int64(to)*int64(from))
		sum := 0.0
		for k := max(int(math.Ceil(at-half)), 0); k <= min(int(at+half), len(samples)-1); k++ {
			t := (float64(k) - at) * base / float64(from)
			sum += float64(samples[k]) * sinc(t) * math.Pow(math.Cos(t*math.Pi/filterWidth/2), 2)
		}
		out[i] = float32(sum * base / float64(from))
	}
	return out
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
