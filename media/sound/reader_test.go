package sound

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads a file in parts of n samples.
func readAll(file []byte, rate, n int) (all []float32, err error) {
	r, err := NewReader(bytes.NewReader(file), rate, 1<<20)
	if err != nil {
		return nil, err
	}
	part := make([]float32, n)
	for {
		n, err := r.Read(part)
		all = append(all, part[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// A recording that is read block by block has the samples of one that is read as a whole.
func TestReader(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b)
	}
	files := map[string][]byte{
		"16 kHz":              file("fmt ", describe(1, 1, 16000, 16), "data", noise(50_001)),
		"stereo":              file("fmt ", describe(1, 2, 44100, 16), "LIST", "x", "data", noise(100_000), "tail", "xx"),
		"slower":              file("fmt ", describe(6, 1, 8000, 8), "data", noise(20_000)),
		"no common divisor":   file("fmt ", describe(7, 3, 44101, 8), "data", noise(60_000)),
		"very slow":           file("fmt ", describe(1, 1, 100, 8), "data", noise(300)),
		"one sample":          file("fmt ", describe(1, 1, 48000, 8), "data", "x"),
		"none":                file("fmt ", describe(1, 1, 48000, 16), "data", "x"),
		"format behind":       file("data", noise(9000), "x   ", "1", "fmt ", describe(1, 1, 22050, 24)),
		"longer than the end": append(file("fmt ", describe(1, 1, 16000, 16)), "data\xff\xff\xff\xff"+noise(9999)...),
	}
	if strconv.IntSize == 64 {
		part := func() []int32 { return slices.Repeat([]int32{1, -500, 3, int32(r.IntN(9000))}, 4) }
		files["FLAC"] = flacFile(t, 2, 16, 16, [][]int32{part(), part()}, [][]int32{part(), part()})
	}
	for name, b := range files {
		for _, rate := range []int{16000, 24000} {
			s, err := Parse(b, 1<<20)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := Resample(s.Mono(), s.Rate, rate)
			for _, n := range []int{1, 1000, 1 << 20} {
				if got, err := readAll(b, rate, n); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s to %d Hz, %d at once: %d samples, %v, want %d", name, rate, n, len(got), err, len(want))
				}
			}
			x, err := NewReader(bytes.NewReader(b), rate, 1<<20)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			info := x.Info()
			if frames := int64(len(s.Samples) / s.Channels); info.Rate != s.Rate || info.Channels != s.Channels || info.Frames < frames && info.Frames > 0 {
				t.Errorf("%s: described as %+v, want %d Hz, %d channels, %d frames", name, info, s.Rate, s.Channels, frames)
			}
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	late := file("data", strings.Repeat("x", 1000), "fmt ", describe(1, 1, 16000, 8))
	if _, err := NewReader(bytes.NewReader(late), 16000, 900); !errors.Is(err, ErrSize) {
		t.Errorf("format behind many samples: %v", err)
	}
	good := file("fmt ", describe(3, 1, 16000, 32), "data", strings.Repeat("\x00\x00\xc0\x7f", 10))
	if _, err := readAll(good, 16000, 10); !errors.Is(err, ErrFormat) {
		t.Errorf("NaN: %v", err)
	}
	failing := errors.New("failing")
	good = file("fmt ", describe(3, 1, 16000, 32), "data", strings.Repeat("x", 40))
	for n := range len(good) {
		r, err := NewReader(io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(failing)), 8000, 900)
		for err == nil {
			_, err = r.Read(make([]float32, 1000))
		}
		if !errors.Is(err, failing) {
			t.Errorf("an error behind %d bytes: %v", n, err)
		}
	}
}
