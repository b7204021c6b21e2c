package cpu

import (
	"bytes"
	"runtime"
	"testing"
)

// TestSparse checks that memory counts from its first use on, and no longer once it is zeroed.
func TestSparse(t *testing.T) {
	const size = 64 << 20
	m, err := MapSparse(size)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := m.Bytes()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which pages are in memory")
	}
	if got := Resident(b); got != 0 {
		t.Errorf("untouched: %d bytes", got)
	}
	part := b[100 : 100+3<<20]
	for i := range part {
		part[i] = 1
	}
	if got := Resident(b); got < 3<<20 || got > 3<<20+8192 {
		t.Errorf("touched: %d bytes, want 3 MiB", got)
	}
	edge := b[100:150]
	Zero(part[50:])
	if got := Resident(b); got > 8192 {
		t.Errorf("zeroed: %d bytes", got)
	}
	if want := bytes.Repeat([]byte{1}, 50); !bytes.Equal(edge, want) {
		t.Error("bytes before those that were zeroed have changed")
	}
	if i := bytes.IndexFunc(part[50:], func(r rune) bool { return r != 0 }); i >= 0 {
		t.Errorf("byte %d is not zero", i)
	}
	small := []byte{1, 2, 3}
	if Zero(small); !bytes.Equal(small, make([]byte, 3)) {
		t.Errorf("got %v, want zeros", small)
	}
}
