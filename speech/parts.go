package speech

import "iter"

// quietPart is the last part of a run in which a cut is looked for: a fifth.
const quietPart = 5

// quietSamples is the length of the parts whose loudness is compared, a fiftieth of a second.
const quietSamples = 320

// parts divides samples into parts of at most most samples, each with the index of its first. They are cut where they are least loud.
func parts(samples []float32, most int) iter.Seq2[int, []float32] {
	return func(yield func(int, []float32) bool) {
		for at := 0; at < len(samples); {
			end := len(samples)
			if end-at > most {
				end = at + quiet(samples[at:at+most])
			}
			if !yield(at, samples[at:end]) {
				return
			}
			at = end
		}
	}
}

// quiet returns the middle of the least loud part near the end of samples.
func quiet(samples []float32) int {
	n := len(samples)
	best, least := n, float32(0)
	for at := n - n/quietPart; at+quietSamples <= n; at += quietSamples / 2 {
		sum := float32(0)
		for _, v := range samples[at : at+quietSamples] {
			sum += v * v
		}
		if best == n || sum < least {
			best, least = at+quietSamples/2, sum
		}
	}
	return best
}
