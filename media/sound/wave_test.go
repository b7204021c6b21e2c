package sound

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// file returns a WAVE file of chunks, each an identifier and its bytes.
func file(chunks ...string) []byte {
	var body bytes.Buffer
	for i := 0; i < len(chunks); i += 2 {
		body.WriteString(chunks[i])
		_ = binary.Write(&body, binary.LittleEndian, uint32(len(chunks[i+1])))
		body.WriteString(chunks[i+1])
		if len(chunks[i+1])%2 == 1 {
			body.WriteByte(0)
		}
	}
	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(body.Len()+4))
	return append(append(head, "WAVE"...), body.Bytes()...)
}

func describe(code, channels uint16, rate uint32, bits uint16) string {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint16(le.AppendUint16(nil, code), channels), rate)
	return string(le.AppendUint16(le.AppendUint16(le.AppendUint32(b, 0), 0), bits))
}

func TestParse(t *testing.T) {
	pcm := "\x00\x80\x00\x00\xff\x7f"
	extensible := describe(codeExtensible, 1, 8000, 16) + "\x16\x00\x10\x00\x04\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
	for _, c := range []struct {
		name string
		file []byte
		want Sound
	}{
		{"integers", file("fmt ", describe(1, 1, 8000, 16), "data", pcm), Sound{8000, 1, true, []float32{-1, 0, 32767.0 / 32768}}},
		{"chunks between", file("LIST", "odd", "fmt ", describe(1, 1, 8000, 16), "fact", "1234", "data", pcm), Sound{8000, 1, true, []float32{-1, 0, 32767.0 / 32768}}},
		{"extensible", file("fmt ", extensible, "data", pcm), Sound{8000, 1, true, []float32{-1, 0, 32767.0 / 32768}}},
		{"stereo without the last half", file("fmt ", describe(1, 2, 44100, 16), "data", pcm), Sound{44100, 2, true, []float32{-1, 0}}},
		{"floats", file("fmt ", describe(3, 1, 16000, 32), "data", "\x00\x00\x80\x3f"), Sound{16000, 1, false, []float32{1}}},
		{"8 bits", file("fmt ", describe(1, 1, 8000, 8), "data", "\x00\x80\xff"), Sound{8000, 1, true, []float32{-1, 0, 127.0 / 128}}},
		{"24 bits", file("fmt ", describe(1, 1, 8000, 24), "data", "\x00\x00\x80\x01\x00\x00"), Sound{8000, 1, false, []float32{-1, 1.0 / (1 << 23)}}},
		{"32 bits", file("fmt ", describe(1, 1, 8000, 32), "data", "\x00\x00\x00\x80\x00\x00\x00\x40"), Sound{8000, 1, false, []float32{-1, 0.5}}},
		{"doubles", file("fmt ", describe(3, 1, 8000, 64), "data", "\x00\x00\x00\x00\x00\x00\xe0\x3f"), Sound{8000, 1, false, []float32{0.5}}},
		{"A-law", file("fmt ", describe(6, 1, 8000, 8), "data", "\xd5\x55\xaa\x2a"), Sound{8000, 1, true, []float32{8.0 / 32768, -8.0 / 32768, 32256.0 / 32768, -32256.0 / 32768}}},
		{"µ-law", file("fmt ", describe(7, 1, 8000, 8), "data", "\xff\x80\x00"), Sound{8000, 1, true, []float32{0, 32124.0 / 32768, -32124.0 / 32768}}},
		{"samples first", file("data", pcm, "fmt ", describe(1, 1, 8000, 16)), Sound{8000, 1, true, []float32{-1, 0, 32767.0 / 32768}}},
		{"a pipe's length", append(file("fmt ", describe(1, 1, 8000, 16)), "data\xff\xff\xff\xff\x00\x80"...), Sound{8000, 1, true, []float32{-1}}},
	} {
		got, err := Parse(c.file, 1<<30)
		if err != nil || got.Rate != c.want.Rate || got.Channels != c.want.Channels || got.Integers != c.want.Integers || !slices.Equal(got.Samples, c.want.Samples) {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good := describe(1, 1, 8000, 16)
	for _, c := range []struct {
		name string
		file []byte
		err  error
		text string
	}{
		{"nothing", nil, ErrFormat, "first bytes"},
		{"another kind", []byte("RIFF....AVI LIST"), ErrFormat, "first bytes"},
		{"no samples", file("fmt ", good), ErrFormat, "no samples"},
		{"samples alone", file("data", "xx"), ErrFormat, "without their format"},
		{"short format", file("fmt ", good[:15], "data", "xx"), ErrFormat, "15 bytes"},
		{"12 bits", file("fmt ", describe(1, 1, 8000, 12), "data", "xxx"), ErrUnsupported, "12 bits"},
		{"compressed", file("fmt ", describe(85, 1, 8000, 0), "data", "xxx"), ErrUnsupported, "code 85"},
		{"no channels", file("fmt ", describe(1, 0, 8000, 16), "data", "xx"), ErrFormat, "0 channels"},
		{"many channels", file("fmt ", describe(1, 65535, 8000, 16), "data", "xx"), ErrFormat, "65535 channels"},
		{"too long", file("fmt ", good, "data", strings.Repeat("x", 1<<10)), ErrSize, "512 samples"},
		{"no rate", file("fmt ", describe(1, 1, 0, 16), "data", "xx"), ErrFormat, "0 samples per second"},
		{"too fast", file("fmt ", describe(1, 1, 1<<31, 16), "data", "xx"), ErrFormat, "2147483648"},
		{"a chunk beyond the end", []byte("RIFF\x00\x00\x00\x00WAVEfmt \xff\xff\xff\x7f0123"), ErrFormat, "chunk"},
		{"no number", file("fmt ", describe(3, 1, 8000, 32), "data", "\x00\x00\xc0\x7f"), ErrFormat, "NaN"},
	} {
		if _, err := Parse(c.file, 1<<10); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.err, c.text)
		}
	}
}

func TestWriteReadsBack(t *testing.T) {
	want := []float32{0, 0.5, -1, 1, 3e-5}
	var b bytes.Buffer
	if err := WriteWave(&b, 22050, want); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b.Bytes(), 1<<30)
	if err != nil || got.Rate != 22050 || got.Channels != 1 || !slices.Equal(got.Samples, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A tone below both Nyquist frequencies is unchanged; one above the new one is removed.
func TestResample(t *testing.T) {
	tone := func(hertz float64, rate, n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = float32(math.Sin(2 * math.Pi * hertz * float64(i) / float64(rate)))
		}
		return s
	}
	for _, c := range []struct {
		from, to int
		hertz    float64
		gone     bool
	}{{44100, 16000, 440, false}, {8000, 16000, 1000, false}, {48000, 16000, 15000, true}, {16000, 16000, 300, false}} {
		got, want := Resample(tone(c.hertz, c.from, c.from), c.from, c.to), tone(c.hertz, c.to, c.to)
		if len(got) != len(want) {
			t.Fatalf("%d to %d: %d samples", c.from, c.to, len(got))
		}
		for i := c.to / 10; i < len(got)-c.to/10; i++ {
			if w := want[i]; c.gone && math.Abs(float64(got[i])) > 0.02 || !c.gone && math.Abs(float64(got[i]-w)) > 0.02 {
				t.Fatalf("%d to %d, %g Hz: sample %d: got %g, want %g (gone: %v)", c.from, c.to, c.hertz, i, got[i], w, c.gone)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file("fmt ", describe(1, 2, 8000, 16), "data", "12345678"))
	f.Add(file("fmt ", describe(3, 1, 8000, 32), "LIST", "x", "data", "12345678"))
	f.Add(file("data", "12345678", "fmt ", describe(codeMuLaw, 1, 44100, 8)))
	f.Add(file("fmt ", describe(1, 1, 1_000_000_000, 16), "data", "12345678"))
	if strconv.IntSize == 64 {
		f.Add(flacFile(f, 2, 16, 32, [][]int32{make([]int32, 32), make([]int32, 32)}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit, rate = 1 << 20, 16000
		s, err := Parse(b, limit)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrSize) || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			return
		}
		if s.Channels < 1 || s.Rate < 1 || len(s.Samples)%s.Channels != 0 || 4*len(s.Samples) > limit {
			t.Fatalf("%d samples of %d channels from %d bytes", len(s.Samples), s.Channels, len(b))
		}
		n := Resampled(len(s.Samples)/s.Channels, s.Rate, rate)
		if n > limit/4 {
			return
		}
		want := Resample(s.Mono(), s.Rate, rate)
		if int64(len(want)) != n {
			t.Fatalf("%d samples of %d Hz, want %d", len(want), s.Rate, n)
		}
		if got, err := readAll(b, rate, 1000); err != nil || !slices.Equal(got, want) {
			t.Fatalf("block by block: %d samples, %v, want %d", len(got), err, len(want))
		}
	})
}
