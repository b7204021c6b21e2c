package speech

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// Source is where the samples of a recording come from, such as a [sound.Reader].
type Source interface {
	// Read reads up to len(p) samples, and at least one. The error behind the last one is io.EOF.
	Read(p []float32) (n int, err error)
}

// feed is a recording of which only the samples that are needed are in memory.
type feed struct {
	from Source    // nil: all samples are in list
	list []float32 // from the sample at on
	at   int
}

// next returns the next n samples without passing them, fewer at the end of the recording. They are valid until the next call.
func (f *feed) next(n int) ([]float32, error) {
	if f.from != nil && len(f.list) < n {
		for f.from != nil && len(f.list) < n {
			f.list = slices.Grow(f.list, 1) // a recording may be far shorter than what the program takes
			to := f.list[len(f.list):min(n, cap(f.list))]
			m, err := f.from.Read(to)
			f.list = f.list[:len(f.list)+max(0, min(m, len(to)))]
			switch {
			case errors.Is(err, io.EOF):
				f.from = nil
			case err != nil:
				return nil, fmt.Errorf("the recording after %d samples: %w", f.at+len(f.list), err)
			}
		}
	}
	return f.list[:min(n, len(f.list))], nil
}

// pass goes n samples forward.
func (f *feed) pass(n int) {
	f.at += n
	if f.from == nil {
		f.list = f.list[n:]
		return
	}
	f.list = f.list[:copy(f.list, f.list[n:])]
}

// quietPart is the last part of a run in which a cut is looked for: a fifth.
const quietPart = 5

// quietSamples is the length of the parts whose loudness is compared, a fiftieth of a second.
const quietSamples = 320

// parts divides the samples into parts of at most most samples, each with the index of its first. They are cut where they are least loud.
// What err points to is set if they cannot be read.
func (f *feed) parts(most int, err *error) iter.Seq2[int, []float32] {
	return func(yield func(int, []float32) bool) {
		for {
			var part []float32
			if part, *err = f.next(most + 1); *err != nil || len(part) == 0 {
				return
			}
			if len(part) > most {
				part = part[:quiet(part[:most])]
			}
			if !yield(f.at, part) {
				return
			}
			f.pass(len(part))
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
