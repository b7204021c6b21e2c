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
	d, err := newDecoder(stream)
	if err != nil {
		return nil, err
	}
	s := &Sound{Rate: d.rate, Channels: d.channels, Integers: d.bits <= 16, Samples: []float32{}}
	for {
		switch s.Samples, err = d.next(s.Samples); {
		case errors.Is(err, io.EOF):
			return s, nil
		case err == nil:
			err = checkSize(int64(len(s.Samples)), limit)
		}
		if err != nil {
			return nil, err
		}
	}
}

// decoder decodes the frames of a file.
type decoder struct {
	stream               *flac.Stream
	rate, channels, bits int
}

func newDecoder(stream *flac.Stream) (*decoder, error) {
	info := stream.Info
	d := &decoder{stream, int(info.SampleRate), int(info.NChannels), int(info.BitsPerSample)}
	if err := checkRate(d.channels, d.rate); err != nil {
		return nil, err
	}
	if d.bits < 4 || d.bits > 32 {
		return nil, fmt.Errorf("%w: samples of %d bits", ErrFormat, d.bits)
	}
	return d, nil
}

// next appends the samples of a frame, at most 65,535 of each channel. The error behind the last one is io.EOF.
func (d *decoder) next(to []float32) ([]float32, error) {
	f, err := d.stream.ParseNext()
	if errors.Is(err, io.EOF) {
		return to, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(f.Subframes) != d.channels || int(f.BitsPerSample) != d.bits {
		return nil, fmt.Errorf("%w: a frame of %d channels and %d bits, the file has %d and %d", ErrFormat, len(f.Subframes), f.BitsPerSample, d.channels, d.bits)
	}
	scale := 1 / float32(uint64(1)<<(d.bits-1))
	for i := range int(f.BlockSize) {
		for _, sub := range f.Subframes {
			to = append(to, float32(sub.Samples[i])*scale)
		}
	}
	return to, nil
}
