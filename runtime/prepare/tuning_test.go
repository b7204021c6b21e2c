package prepare

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/runtime/lower"
)

// TestDecodeTuning refuses files that the encoder never writes.
func TestDecodeTuning(t *testing.T) {
	want := tuning{times: map[uint64]lower.Times{7: {Portable: 5, Lowered: 3}, 1 << 63: {Portable: maxTime, Lowered: 1}}}
	whole := want.encode()
	var got tuning
	if err := got.decode(whole); err != nil || !maps.Equal(got.times, want.times) {
		t.Fatalf("%v: %v", err, got.times)
	}
	seal := func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
		return b
	}
	change := func(at int, to uint64, size int) []byte {
		b := slices.Clone(whole)
		var x [8]byte
		binary.LittleEndian.PutUint64(x[:], to)
		copy(b[at:at+size], x[:])
		return seal(b)
	}
	for name, b := range map[string][]byte{
		"no bytes": {}, "a header alone": whole[:tuningHeader], "another magic": change(0, 1, 8), "a byte less": whole[:len(whole)-1],
		"a byte more": seal(append(slices.Clone(whole), 0)), "a flipped bit": append(slices.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1),
		"more regions than there are": change(12, 3, 4), "fewer": change(12, 1, 4), "very many": change(12, 1<<32-1, 4),
		"no time": change(tuningHeader+8, 0, 8), "more than any time": change(tuningHeader+16, uint64(maxTime)+1, 8),
		"a time below 0": change(tuningHeader+8, 1<<63, 8),
	} {
		if err := got.decode(b); err == nil {
			t.Errorf("%s: decoded as %v", name, got.times)
		}
		if !maps.Equal(got.times, want.times) {
			t.Errorf("%s: times changed", name)
		}
	}
}

// FuzzTuning decodes arbitrary bytes, and compares the encoding of the result.
func FuzzTuning(f *testing.F) {
	f.Add((&tuning{times: map[uint64]lower.Times{7: {Portable: 5, Lowered: 3}}}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= tuningHeader {
			binary.LittleEndian.PutUint32(data[8:], crc32.Checksum(data[12:], castagnoli))
		}
		var a, b tuning
		if a.decode(data) != nil {
			return
		}
		if err := b.decode(a.encode()); err != nil || !maps.Equal(a.times, b.times) {
			t.Errorf("%v: %v, then %v", err, a.times, b.times)
		}
	})
}
