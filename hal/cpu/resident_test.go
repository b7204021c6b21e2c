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

// TestMove checks that pages of memory change places, without those beside them.
func TestMove(t *testing.T) {
	const size, part = 5 << 20, 3<<20 + 100
	page := os.Getpagesize()
	var list [2][]byte
	for i := range list {
		m, err := MapSparse(size)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		list[i] = m.Bytes()
	}
	from, to := list[0], list[1]
	for _, at := range []int{0, 1 << 20, part - 1, part, size - 1} {
		from[at], to[at] = 7, 9
	}
	if Move(to[:part], from[:part+page]) {
		t.Fatal("parts of different sizes")
	}
	if !Move(to[:part], from[:part]) {
		t.Skip("the system does not move memory")
	}
	if n := Resident(from); n != int64(2*page) {
		t.Errorf("%d bytes left, want those of the last two pages", n)
	}
	for _, c := range []struct {
		at       int
		from, to byte
	}{{0, 0, 7}, {1 << 20, 0, 7}, {part - 1, 7, 9}, {part, 7, 9}, {size - 1, 7, 9}} {
		if from[c.at] != c.from || to[c.at] != c.to {
			t.Errorf("byte %d: got %d and %d, want %d and %d", c.at, from[c.at], to[c.at], c.from, c.to)
		}
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
