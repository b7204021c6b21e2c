package sound

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
)

// Reader reads a recording block by block: its channels are mixed, and it is resampled. Its memory does not depend on the length of
// the recording.
type Reader struct {
	info   Info
	blocks func() (mono []float32, err error) // valid until the next call; io.EOF behind the last one
	filter *filter                            // nil: no other rate
	input  []float32                          // of the filter, from a sample on
	first  int
	read   int64     // samples of one channel that were decoded
	made   int       // results of the filter
	more   bool      // the filter has results of the samples in input
	err    error     // after which there is nothing to read
	end    error     // after the samples in input
	out    []float32 // results that were not read
	room   []float32 // their memory
}

// Info describes a recording.
type Info struct {
	Rate     int // samples per channel and second
	Channels int
	Frames   int64 // samples per channel as the file says, 0 if it does not
}

// blockFrames is the number of samples of a channel that are decoded at once.
const blockFrames = 4096

// filteredFrames is the number of samples that the filter makes at once: a low rate makes many of a block.
const filteredFrames = 16 << 10

// NewReader returns a reader of a WAVE or FLAC file whose samples have a rate. A WAVE file whose samples come before their format is read
// as a whole: it has at most limit bytes, and so have its samples.
func NewReader(r io.Reader, rate int, limit int64) (*Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	start, err := b.Peek(startBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	x := &Reader{}
	switch {
	case isWave(start):
		err = x.openWave(b, limit)
	case isFLAC(start):
		err = x.openFLAC(b)
	default:
		err = errStart(start)
	}
	if err != nil {
		return nil, err
	}
	if x.info.Rate != rate {
		x.filter = newFilter(x.info.Rate, rate)
	}
	return x, nil
}

// Info describes the recording as it is in the file.
func (x *Reader) Info() Info { return x.info }

// Seconds returns how much of the recording was decoded.
func (x *Reader) Seconds() float64 { return float64(x.read) / float64(x.info.Rate) }

// Read reads up to len(p) samples, at least one unless p is empty. The error behind the last one is io.EOF.
func (x *Reader) Read(p []float32) (n int, err error) {
	for len(x.out) == 0 && x.err == nil {
		x.fill()
	}
	if n = copy(p, x.out); n > 0 || len(p) == 0 {
		x.out = x.out[n:]
		return n, nil
	}
	return 0, x.err
}

// fill decodes a block.
func (x *Reader) fill() {
	if !x.more {
		var block []float32
		block, x.end = x.blocks()
		x.read += int64(len(block))
		if x.filter == nil {
			x.out, x.err = block, x.end
			return
		}
		x.input = append(x.input, block...)
	}
	x.room = x.room[:0]
	end := x.first + len(x.input)
	for {
		first, weights := x.filter.at(x.made)
		if x.end == nil && first+len(weights) > end || x.end != nil && int64(x.made) >= Resampled(end, x.filter.from, x.filter.to) {
			x.more, x.err = false, x.end
			break
		}
		if x.more = len(x.room) == filteredFrames; x.more {
			break
		}
		x.room = append(x.room, product(weights, x.input, first-x.first))
		x.made++
	}
	x.out = x.room
	if first, _ := x.filter.at(x.made); first > x.first {
		n := copy(x.input, x.input[min(first-x.first, len(x.input)):])
		x.input, x.first = x.input[:n], min(first, end)
	}
}

// openWave finds the samples of a file.
func (x *Reader) openWave(r *bufio.Reader, limit int64) error {
	var seen bytes.Buffer
	f, n, err := findWave(io.TeeReader(r, &seen))
	if err != nil {
		return err
	}
	if f == nil { // the format is behind the samples
		rest, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err == nil && int64(len(rest)) > limit {
			err = fmt.Errorf("%w: a file of more than %d bytes whose samples come before their format", ErrSize, limit)
		}
		if err != nil {
			return err
		}
		return x.openAll(append(seen.Bytes(), rest...), limit)
	}
	width := f.bits / 8 * f.channels
	x.info = Info{f.rate, f.channels, n / int64(width)}
	data, raw := io.LimitReader(r, n), make([]byte, blockFrames*width)
	s := &Sound{Rate: f.rate, Channels: f.channels}
	x.blocks = func() ([]float32, error) {
		n, err := io.ReadFull(data, raw)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if e := f.decodeAll(raw[:n/width*width], s); e != nil {
			return nil, e
		}
		return s.Mono(), err
	}
	return nil
}

// openAll opens a file that is in memory.
func (x *Reader) openAll(file []byte, limit int64) error {
	s, err := Parse(file, limit)
	if err != nil {
		return err
	}
	x.info = Info{s.Rate, s.Channels, int64(len(s.Samples) / s.Channels)}
	x.blocks = func() ([]float32, error) { return s.Mono(), io.EOF }
	return nil
}

// openFLAC opens a file that is decoded frame by frame.
func (x *Reader) openFLAC(r io.Reader) error {
	stream, err := flac.New(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	d, err := newDecoder(stream)
	if err != nil {
		return err
	}
	s := &Sound{Rate: d.rate, Channels: d.channels}
	x.info = Info{d.rate, d.channels, int64(min(stream.Info.NSamples, 1<<40))}
	x.blocks = func() ([]float32, error) {
		var err error
		if s.Samples, err = d.next(s.Samples[:0]); err != nil {
			return nil, err
		}
		return s.Mono(), nil
	}
	return nil
}
