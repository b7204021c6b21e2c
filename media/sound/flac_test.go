package sound

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// flacFile returns a file of frames of n samples of each channel.
func flacFile(t testing.TB, channels, bits, n int, frames ...[][]int32) []byte {
	t.Helper()
	var b bytes.Buffer
	info := &meta.StreamInfo{BlockSizeMin: uint16(n), BlockSizeMax: uint16(n), SampleRate: 16000, NChannels: uint8(channels), BitsPerSample: uint8(bits)}
	e, err := flac.NewEncoder(&b, info)
	if err != nil {
		t.Fatal(err)
	}
	for _, samples := range frames {
		f := &frame.Frame{Header: frame.Header{HasFixedBlockSize: true, BlockSize: uint16(n), SampleRate: 16000, Channels: frame.Channels(channels - 1), BitsPerSample: uint8(bits)}}
		for _, s := range samples {
			f.Subframes = append(f.Subframes, &frame.Subframe{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, Samples: s, NSamples: n})
		}
		if err := e.WriteFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFLAC(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the encoder that makes the files writes far too much on 32-bit systems")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ channels, bits int }{{1, 16}, {2, 16}, {2, 24}, {6, 8}} {
		var frames [][][]int32
		var want []float32
		for range 3 {
			list := make([][]int32, c.channels)
			for k := range list {
				list[k] = make([]int32, 32)
				for i := range list[k] {
					list[k][i] = int32(r.IntN(1<<c.bits) - 1<<(c.bits-1))
				}
			}
			for i := range 32 {
				for k := range list {
					want = append(want, float32(list[k][i])/float32(uint64(1)<<(c.bits-1)))
				}
			}
			frames = append(frames, list)
		}
		file := flacFile(t, c.channels, c.bits, 32, frames...)
		got, err := Parse(file, 1<<20)
		if err != nil || got.Channels != c.channels || got.Rate != 16000 || got.Integers != (c.bits <= 16) || !slices.Equal(got.Samples, want) {
			t.Errorf("%d channels, %d bits: got %+v, %v", c.channels, c.bits, got, err)
		}
		if _, err := Parse(file, int64(4*len(want)-1)); !errors.Is(err, ErrSize) {
			t.Errorf("above the limit: %v", err)
		}
		for n := range file {
			if _, err := Parse(file[:n], 1<<20); err != nil && !errors.Is(err, ErrFormat) {
				t.Errorf("%d of %d bytes: %v", n, len(file), err)
			}
		}
	}
}
