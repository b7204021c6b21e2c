package cpu

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"
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

// TestDiscard checks that the kernel makes no huge pages of memory that is released.
func TestDiscard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has areas with flags")
	}
	m, err := MapMemory(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	released := m.Bytes()[2<<20 : 6<<20]
	for i := range m.Bytes() {
		m.Bytes()[i] = 1
	}
	if flags := flagsAt(t, released); !strings.Contains(flags, " hg") {
		t.Skipf("the kernel has no huge pages: %s", flags)
	}
	Discard(released)
	if flags := flagsAt(t, released); !strings.Contains(flags, " nh") || Resident(released) != 0 || m.Bytes()[6<<20] != 1 {
		t.Errorf("got %s, %d bytes in memory, want the flag nh and none", flags, Resident(released))
	}
}

// flagsAt returns the line of /proc/self/smaps with the flags of the area of b.
func flagsAt(t *testing.T, b []byte) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	within, at := false, uint64(uintptr(unsafe.Pointer(&b[0])))
	for line := range strings.Lines(string(data)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			within = from <= at && at < to
		} else if within && strings.HasPrefix(line, "VmFlags:") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("no area")
	return ""
}
