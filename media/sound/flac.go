package sound

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
)

// isFLAC reports whether start is the beginning of a FLAC file.
func isFLAC(start []byte) bool { return len(start) >= 4 && string(start[:4]) == "fLaC" }

// parseFLAC decodes a file frame by frame. The number of samples in its header is not used: silence needs few bytes.
func parseFLAC(file []byte, limit int64) (*Sound, error) {
	stream, err := flac.New(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	info := stream.Info
	channels, bits := int(info.NChannels), int(info.BitsPerSample)
	if err := checkRate(channels, int(info.SampleRate)); err != nil {
		return nil, err
	}
	if bits < 4 || bits > 32 {
		return nil, fmt.Errorf("%w: samples of %d bits", ErrFormat, bits)
	}
	s := &Sound{Rate: int(info.SampleRate), Channels: channels, Integers: bits <= 16, Samples: []float32{}}
	scale := 1 / float32(uint64(1)<<(bits-1))
	for {
		f, err := stream.ParseNext()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if len(f.Subframes) != channels || int(f.BitsPerSample) != bits {
			return nil, fmt.Errorf("%w: a frame of %d channels and %d bits, the file has %d and %d", ErrFormat, len(f.Subframes), f.BitsPerSample, channels, bits)
		}
		if err := checkSize(int64(len(s.Samples)+channels*int(f.BlockSize)), limit); err != nil {
			return nil, err
		}
		for i := range int(f.BlockSize) {
			for _, sub := range f.Subframes {
				s.Samples = append(s.Samples, float32(sub.Samples[i])*scale)
			}
		}
	}
}
