package sound

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// startBytes is the number of first bytes that identify a file.
const startBytes = 12

// isWave reports whether start is the beginning of a WAVE file.
func isWave(start []byte) bool {
	return len(start) >= startBytes && string(start[:4]) == "RIFF" && string(start[8:12]) == "WAVE"
}

// Codes of sample formats.
const (
	codePCM        = 1
	codeFloat      = 3
	codeALaw       = 6
	codeMuLaw      = 7
	codeExtensible = 0xfffe // the code is at the end of a longer format chunk
)

// Limits far beyond any recording.
const (
	maxRate     = 768_000
	maxChannels = 64
)

// decoders convert a sample, by code and bits. 8-bit integers are unsigned in WAVE files.
var decoders = map[[2]int]func(b []byte) float32{
	{codePCM, 8}:    func(b []byte) float32 { return float32(int(b[0])-1<<7) / (1 << 7) },
	{codePCM, 16}:   func(b []byte) float32 { return float32(int16(binary.LittleEndian.Uint16(b))) / (1 << 15) },
	{codePCM, 24}:   func(b []byte) float32 { return float32(int32(b[0])<<8|int32(b[1])<<16|int32(b[2])<<24) / (1 << 31) },
	{codePCM, 32}:   func(b []byte) float32 { return float32(int32(binary.LittleEndian.Uint32(b))) / (1 << 31) },
	{codeFloat, 32}: func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) },
	{codeFloat, 64}: func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) },
	{codeALaw, 8}:   func(b []byte) float32 { return aLaw(b[0]) },
	{codeMuLaw, 8}:  func(b []byte) float32 { return muLaw(b[0]) },
}

// aLaw and muLaw expand a sample of 8 bits as ITU-T G.711 says.
func aLaw(b byte) float32 {
	b ^= 0x55
	exponent, mantissa := b>>4&7, int(b&15)<<4+8
	if exponent > 0 {
		mantissa = (mantissa + 1<<8) << (exponent - 1)
	}
	return signed(mantissa, b&0x80 == 0)
}

func muLaw(b byte) float32 {
	b = ^b
	const bias = 0x84
	return signed((int(b&15)<<3+bias)<<(b>>4&7)-bias, b&0x80 != 0)
}

func signed(n int, negative bool) float32 {
	if negative {
		n = -n
	}
	return float32(n) / (1 << 15)
}

// format is the content of the chunk "fmt ".
type format struct {
	code, channels, bits int
	rate                 int
	decode               func(b []byte) float32
}

// parseWave parses a file, whose chunks may have any order. A data chunk longer than the file, as written by recorders that write
// to pipes, ends with the file.
func parseWave(file []byte, limit int64) (*Sound, error) {
	var f *format
	var data []byte
	for rest := file[startBytes:]; len(rest) >= 8 && (f == nil || data == nil); {
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
			data = body
		}
		rest = rest[min(8+len(body)+len(body)%2, len(rest)):]
	}
	switch {
	case data == nil:
		return nil, fmt.Errorf("%w: no samples", ErrFormat)
	case f == nil:
		return nil, fmt.Errorf("%w: samples without their format", ErrFormat)
	}
	return f.sound(data, limit)
}

func parseFormat(b []byte) (*format, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("%w: a format of %d bytes, want 16", ErrFormat, len(b))
	}
	le := binary.LittleEndian
	f := &format{code: int(le.Uint16(b)), channels: int(le.Uint16(b[2:])), bits: int(le.Uint16(b[14:])), rate: int(le.Uint32(b[4:]))}
	if f.code == codeExtensible && len(b) >= 26 {
		f.code = int(le.Uint16(b[24:]))
	}
	if err := checkRate(f.channels, f.rate); err != nil {
		return nil, err
	}
	if f.decode = decoders[[2]int{f.code, f.bits}]; f.decode == nil {
		return nil, fmt.Errorf("%w: samples of code %d and %d bits, want integers of 8, 16, 24 or 32 bits (PCM), floats of 32 or 64, A-law or µ-law",
			ErrUnsupported, f.code, f.bits)
	}
	return f, nil
}

// checkRate refuses numbers that no recording has.
func checkRate(channels, rate int) error {
	if channels < 1 || channels > maxChannels || rate < 1 || rate > maxRate {
		return fmt.Errorf("%w: %d channels of %d samples per second, want 1 to %d of at most %d", ErrFormat, channels, rate, maxChannels, maxRate)
	}
	return nil
}

// sound converts samples, and drops an incomplete last frame.
func (f *format) sound(data []byte, limit int64) (*Sound, error) {
	width := f.bits / 8
	n := len(data) / (width * f.channels) * f.channels
	if err := checkSize(int64(n), limit); err != nil {
		return nil, err
	}
	s := &Sound{Rate: f.rate, Channels: f.channels, Integers: f.code != codeFloat && f.bits <= 16, Samples: make([]float32, n)}
	for i := range s.Samples {
		v := f.decode(data[i*width:])
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("%w: sample %d is %v", ErrFormat, i, v)
		}
		s.Samples[i] = v
	}
	return s, nil
}

// WriteWave writes samples of one channel as 32-bit floats.
func WriteWave(w io.Writer, rate int, samples []float32) error {
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
