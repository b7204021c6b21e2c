package native

import (
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestSlab allocates until a slab is full and checks that it is unmapped after the last release.
func TestSlab(t *testing.T) {
	const size = 64 << 10
	s := newSlab(size, size/2)
	if s == nil {
		t.Fatal("got no slab")
	}
	blocks := 0
	for last := xnn.Address(0); ; blocks++ {
		b := s.next(1000)
		if b == nil {
			break
		}
		at := xnn.AddressOf(b)
		if again := xnn.AddressOf(s.next(1000)); again != at {
			t.Fatalf("block %d: next returned %#x, then %#x", blocks, at, again)
		}
		if at%tensor.Alignment != 0 || last != 0 && at-last < 1000+tensor.Padding {
			t.Fatalf("block %d: got address %#x after %#x, want it aligned and apart", blocks, at, last)
		}
		b[0], b[999] = 1, 1
		s.allocate(len(b))
		last = at
	}
	if want := size / (1000 + 2*tensor.Padding); blocks < want {
		t.Errorf("got %d blocks, want at least %d", blocks, want)
	}
	for range blocks {
		s.release()
		if s.pages.Bytes() == nil {
			t.Fatal("unmapped before the last release")
		}
	}
	if s.release(); s.pages.Bytes() != nil {
		t.Error("still mapped after the last release")
	}
}

// TestSlabSmall checks that newSlab returns nil for a small size and that a nil slab is usable.
func TestSlabSmall(t *testing.T) {
	s := newSlab(100, 100)
	if s != nil || s.next(1) != nil {
		t.Error("got a slab of 100 bytes, want nil")
	}
	s.release()
}
