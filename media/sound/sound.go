// Package sound, which has no compatibility promise yet, reads recordings for models: WAVE and FLAC files, one channel of several, other
// rates, and the spectrograms that recognisers take. What a file claims is checked before memory is allocated for it.
package sound

import (
	"errors"
	"fmt"
)

// Sound holds the interleaved samples of all channels; integers are scaled to -1 … 1.
type Sound struct {
	Rate     int // samples per channel and second
	Channels int
	Integers bool // the file has integers of at most 16 bits
	Samples  []float32
}

// Classes of errors; match with errors.Is.
var (
	ErrFormat      = errors.New("malformed recording")
	ErrUnsupported = errors.New("unsupported recording")
	ErrSize        = errors.New("recording too long")
)

// IsStart reports whether start, the first bytes of a file, is the beginning of a recording that Parse reads.
func IsStart(start []byte) bool { return isWave(start) || isFLAC(start) }

// Parse parses a WAVE or FLAC file. The samples that it returns have at most limit bytes, four each; more are ErrSize.
func Parse(file []byte, limit int64) (*Sound, error) {
	switch {
	case isWave(file):
		return parseWave(file, limit)
	case isFLAC(file):
		return parseFLAC(file, limit)
	}
	return nil, errStart(file)
}

func errStart(file []byte) error {
	return fmt.Errorf("%w: first bytes %q, want a WAVE or FLAC file", ErrFormat, file[:min(len(file), startBytes)])
}

// checkSize refuses n samples of four bytes above a limit.
func checkSize(n, limit int64) error {
	if n > limit/4 {
		return fmt.Errorf("%w: %d samples of all channels, the limit is %d", ErrSize, n, limit/4)
	}
	return nil
}

// Mono returns the mean of all channels, the samples themselves if there is only one.
func (s *Sound) Mono() []float32 {
	n := s.Channels
	if n == 1 {
		return s.Samples
	}
	samples := make([]float32, len(s.Samples)/n)
	for i := range samples {
		sum := 0.0
		for _, v := range s.Samples[i*n : (i+1)*n] {
			sum += float64(v)
		}
		samples[i] = float32(sum / float64(n))
	}
	return samples
}

// Channel returns one channel, counted from 0.
func (s *Sound) Channel(c int) []float32 {
	samples := make([]float32, len(s.Samples)/s.Channels)
	for i := range samples {
		samples[i] = s.Samples[i*s.Channels+c]
	}
	return samples
}
