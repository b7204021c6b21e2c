// Package wav reads and writes WAVE files of 16-bit integers or 32-bit floats. Allocations
// are bounded by the size of the file.
package wav

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Sound holds interleaved samples of all channels; integers are scaled to -1 … 1.
type Sound struct {
	Rate     int // samples per channel and second
	Channels int
	Integers bool // the file has 16-bit integers
	Samples  []float32
}

// Classes of errors; match with errors.Is.
var (
	ErrFormat      = errors.New("malformed WAVE file")
	ErrUnsupported = errors.New("unsupported WAVE file")
)

// startBytes is the number of first bytes that identify a file.
const startBytes = 12

// IsStart reports whether start is the beginning of a WAVE file.
func IsStart(start []byte) bool {
	return len(start) >= startBytes && string(start[:4]) == "RIFF" && string(start[8:12]) == "WAVE"
}

// Codes of sample formats.
const (
	codePCM        = 1
	codeFloat      = 3
	codeExtensible = 0xfffe // the code is at the end of a longer format chunk
)

// Limits far beyond any recording.
const (
	maxRate     = 768_000
	maxChannels = 64
)

// format is the content of the chunk "fmt ".
type format struct {
	code, channels, bits int
	rate                 int
}

// Parse parses a file. A data chunk longer than the file, as written by recorders that write
// to pipes, ends with the file.
func Parse(file []byte) (*Sound, error) {
	if !IsStart(file) {
		return nil, fmt.Errorf("%w: first bytes %q", ErrFormat, file[:min(len(file), startBytes)])
	}
	var f *format
	for rest := file[startBytes:]; len(rest) >= 8; {
		id, n := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		body := rest[8:]
		if n > int64(len(body)) && id != "data" {
			return nil, fmt.Errorf("%w: chunk %q of %d bytes, the file has %d more", ErrFormat, id, n, len(body))
		}
		body = body[:min(n, int64(len(body)))]
		switch id {
		case "fmt ":
			var err error
			if f, err = parseFormat(body); err != nil {
				return nil, err
			}
		case "data":
			if f == nil {
				return nil, fmt.Errorf("%w: samples before their format", ErrFormat)
			}
			return f.sound(body)
		}
		rest = rest[min(8+len(body)+len(body)%2, len(rest)):]
	}
	return nil, fmt.Errorf("%w: no samples", ErrFormat)
}

func parseFormat(b []byte) (*format, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("%w: a format of %d bytes, want 16", ErrFormat, len(b))
	}
	le := binary.LittleEndian
	f := &format{int(le.Uint16(b)), int(le.Uint16(b[2:])), int(le.Uint16(b[14:])), int(le.Uint32(b[4:]))}
	if f.code == codeExtensible && len(b) >= 26 {
		f.code = int(le.Uint16(b[24:]))
	}
	if f.channels < 1 || f.channels > maxChannels || f.rate < 1 || f.rate > maxRate {
		return nil, fmt.Errorf("%w: %d channels of %d samples per second", ErrFormat, f.channels, f.rate)
	}
	if (f.code != codePCM || f.bits != 16) && (f.code != codeFloat || f.bits != 32) {
		return nil, fmt.Errorf("%w: samples of code %d and %d bits, want 16-bit integers (PCM) or 32-bit floats", ErrUnsupported, f.code, f.bits)
	}
	return f, nil
}

// sound converts samples, and drops an incomplete last frame.
func (f *format) sound(data []byte) (*Sound, error) {
	width := f.bits / 8
	n := len(data) / (width * f.channels) * f.channels
	s := &Sound{Rate: f.rate, Channels: f.channels, Integers: f.code == codePCM, Samples: make([]float32, n)}
	for i := range s.Samples {
		if s.Integers {
			s.Samples[i] = float32(int16(binary.LittleEndian.Uint16(data[2*i:]))) / (1 << 15)
			continue
		}
		v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("%w: sample %d is %v", ErrFormat, i, v)
		}
		s.Samples[i] = v
	}
	return s, nil
}

// Write writes samples of one channel as 32-bit floats.
func Write(w io.Writer, rate int, samples []float32) error {
	if rate < 1 || rate > maxRate {
		return fmt.Errorf("%d samples per second", rate)
	}
	if int64(len(samples)) > (math.MaxUint32-64)/4 {
		return fmt.Errorf("%d samples are too many for a WAVE file", len(samples))
	}
	le := binary.LittleEndian
	size := uint32(4 * len(samples))
	b := append(le.AppendUint32([]byte("RIFF"), 4+24+8+size), "WAVEfmt "...)
	b = le.AppendUint16(le.AppendUint16(le.AppendUint32(b, 16), codeFloat), 1)
	b = le.AppendUint32(le.AppendUint32(b, uint32(rate)), 4*uint32(rate))
	b = append(le.AppendUint16(le.AppendUint16(b, 4), 32), "data"...)
	b = le.AppendUint32(b, size)
	for _, v := range samples {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	_, err := w.Write(b)
	return err
}
