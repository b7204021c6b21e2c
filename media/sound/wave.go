package sound

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
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
	r := bytes.NewReader(file)
	f, n, err := findWave(r)
	if err != nil {
		return nil, err
	}
	data := file[len(file)-r.Len():][:min(n, int64(r.Len()))]
	if f == nil {
		if _, err := r.Seek(int64(len(data)+len(data)%2), io.SeekCurrent); err != nil {
			return nil, err
		}
		if f, err = findFormat(r); err != nil {
			return nil, err
		}
	}
	return f.sound(data, limit)
}

// findWave reads a file up to the first of its n bytes of samples, and returns their format, nil if that has not come.
func findWave(r io.Reader) (f *format, n int64, err error) {
	if _, err := io.CopyN(io.Discard, r, startBytes); err != nil {
		return nil, 0, err
	}
	for {
		id, n, err := nextChunk(r)
		switch {
		case err != nil:
			return nil, 0, cmp.Or(ended(err, "no samples"), err)
		case id == "data":
			return f, n, nil
		case id == "fmt " && f == nil:
			f, err = readFormat(r, n)
		default:
			err = skipChunk(r, id, n)
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// findFormat reads a file behind its samples up to their format.
func findFormat(r io.Reader) (*format, error) {
	for {
		id, n, err := nextChunk(r)
		if err != nil {
			return nil, cmp.Or(ended(err, "samples without their format"), err)
		}
		if id == "fmt " {
			return readFormat(r, n)
		}
		if err := skipChunk(r, id, n); err != nil {
			return nil, err
		}
	}
}

// nextChunk reads the head of a chunk.
func nextChunk(r io.Reader) (id string, n int64, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", 0, err
	}
	return string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:])), nil
}

// ended returns the error of a file that has ended, nil for another reason.
func ended(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s", ErrFormat, what)
	}
	return nil
}

// skipChunk skips n bytes and the byte that makes them even, which the last chunk may lack.
func skipChunk(r io.Reader, id string, n int64) error {
	m, err := io.CopyN(io.Discard, r, n+n%2)
	if m >= n && errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return cmp.Or(ended(err, fmt.Sprintf("chunk %q of %d bytes, the file has %d more", id, n, m)), err)
	}
	return nil
}

// maxFormat is more than any format chunk has.
const maxFormat = 1 << 10

func readFormat(r io.Reader, n int64) (*format, error) {
	b := make([]byte, min(n, maxFormat))
	m, err := io.ReadFull(r, b)
	if err != nil {
		return nil, cmp.Or(ended(err, fmt.Sprintf("chunk %q of %d bytes, the file has %d more", "fmt ", n, m)), err)
	}
	f, err := parseFormat(b)
	if err != nil {
		return nil, err
	}
	return f, skipChunk(r, "fmt ", n+n%2-int64(len(b)))
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
	s := &Sound{Rate: f.rate, Channels: f.channels, Integers: f.code != codeFloat && f.bits <= 16, Samples: make([]float32, 0, n)}
	return s, f.decodeAll(data[:n*width], s)
}

// decodeAll decodes samples into the memory of those of s.
func (f *format) decodeAll(data []byte, s *Sound) error {
	s.Samples = s.Samples[:0]
	for ; len(data) > 0; data = data[f.bits/8:] {
		v := f.decode(data)
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("%w: sample %d is %v", ErrFormat, len(s.Samples), v)
		}
		s.Samples = append(s.Samples, v)
	}
	return nil
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
