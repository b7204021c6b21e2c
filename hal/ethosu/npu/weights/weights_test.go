package weights

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// bitWriter is the inverse of bitReader.
type bitWriter struct {
	b   []byte
	pos int
}

func (w *bitWriter) put(n uint, v int) {
	for i := range int(n) {
		if w.pos%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.pos/8] |= byte(v>>i&1) << (w.pos % 8)
		w.pos++
	}
}

// folded returns v with its sign in bit 0.
func folded(v int) int {
	if v < 0 {
		return -v<<1 | 1
	}
	return v << 1
}

// fastStream encodes weights of the given number of bits; 8 is raw, with an offset.
func fastStream(values []int, bits uint, adjust int) []byte {
	var w bitWriter
	flags := map[uint]int{8: 1, 4: 0, 2: 2}[bits]
	w.put(2, flags)
	w.put(16, 0)
	for w.pos < 104 {
		w.put(1, 0)
	}
	w.put(8, adjust)
	table := slices.Compact(slices.Sorted(slices.Values(values)))
	for i := range 16 {
		v := 0
		if i < len(table) && bits < 8 {
			v = table[i]
		}
		w.put(9, folded(v))
	}
	for _, v := range values {
		if bits == 8 {
			w.put(8, v+adjust)
		} else {
			w.put(bits, slices.Index(table, v))
		}
	}
	for len(w.b)%fwdAlign != 0 {
		w.put(8, 0)
	}
	return w.b
}

func TestFastStream(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, tt := range []struct {
		bits   uint
		adjust int
		set    []int
	}{
		{8, 0, []int{-128, -1, 0, 5, 127}}, {8, -100, []int{0, 200, 227}}, {8, 127, []int{-255, -128, 0}},
		{4, 0, []int{-255, -7, 0, 1, 2, 3, 4, 5, 100, 200, 255}}, {2, 0, []int{-255, 0, 1, 255}},
	} {
		values := make([]int, 77)
		for i := range values {
			values[i] = tt.set[r.IntN(len(tt.set))]
		}
		copy(values, tt.set)
		budget := 1 << 20
		got, err := decodeFWD(fastStream(values, tt.bits, tt.adjust), &budget)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range values {
			if int(got[i]) != want {
				t.Fatalf("%d bits, adjusted by %d: weight %d is %d, want %d", tt.bits, tt.adjust, i, got[i], want)
			}
		}
		if extra := len(got) - len(values); extra > 4*fwdAlign {
			t.Errorf("%d bits: %d weights after the end", tt.bits, extra)
		}
	}
	budget := 100
	if _, err := decodeFWD(make([]byte, 64), &budget); !errors.Is(err, errBudget) {
		t.Errorf("over the budget: %v", err)
	}
}

// slice encodes weights without compression and without a palette: 9-bit numbers.
func slice(w *bitWriter, values []int) {
	w.put(3, zdivNone)
	w.put(15, len(values)-1)
	w.put(3, wdivUncompressed)
	w.put(2, 2) // a new palette
	w.put(5, 0)
	w.put(5, 0)
	w.put(3, 9-2)
	for _, v := range values {
		w.put(9, folded(v))
	}
}

func TestMLW(t *testing.T) {
	first, second := []int{-255, 0, 255, 1, -1, 7, 8, 9, 10, 11}, []int{3}
	var w bitWriter
	slice(&w, first)
	slice(&w, second)
	w.put(3, zdivEnd)
	for w.pos%128 != 0 {
		w.put(1, 1)
	}
	m := new(mlw)
	m.reset(w.b)
	got, err := m.fill(make([]int16, 0, 100))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range append(first, second...) {
		if i >= len(got) || int(got[i]) != want {
			t.Fatalf("weights %v, want %v and %v", got, first, second)
		}
	}
	if len(got) != len(first)+len(second) {
		t.Errorf("%d weights, want %d", len(got), len(first)+len(second))
	}
}

func TestMLWFaults(t *testing.T) {
	header := func(zdiv, count, wdiv, palette int) *bitWriter {
		w := &bitWriter{}
		w.put(3, zdiv)
		w.put(15, count-1)
		w.put(3, wdiv)
		w.put(1, 0)
		w.put(1, palette)
		return w
	}
	tests := []struct {
		name string
		w    *bitWriter
		want string
	}{
		{"zero divisor", header(5, 1, 0, 1), "zero divisor 5"},
		{"weight divisor", header(zdivNone, 1, 6, 1), "weight divisor 6"},
		{"no palette", header(zdivNone, 1, 0, 0), "without a palette"},
		{"ends inside", header(zdivNone, 30000, 5, 1), "ends inside a slice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := new(mlw)
			m.reset(append(tt.w.b, 0, 0))
			_, err := m.fill(make([]int16, 0, 10))
			if !errors.Is(err, isa.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want …%s…", err, tt.want)
			}
		})
	}
}

// TestPaddingIsZero finds a weight where the order has padding, and one after the end.
func TestPaddingIsZero(t *testing.T) {
	order := Order{BlockDepth: 8, UBlock: 8, IFMUBlock: 8, IFMBlock: 32, Round: 1, SubY: 8, SubX: 8, Cores: 1, StrideX: 1, StrideY: 1}
	for _, tt := range []struct {
		n, at int // number of weights, and the one that is not 0
		want  string
	}{
		{256, 3, ""}, // channel 0, input 3
		{256, 5, "padding weight 5: got 1, want 0"},
		{257, 256, "weight 256 past the end: got 1, want 0"},
		{255, 3, "weight stream too short: 255 weights, up to output channel 4 of 4"},
	} {
		values := make([]int, tt.n)
		values[tt.at] = 1
		var w bitWriter
		slice(&w, values)
		w.put(3, zdivEnd)
		d := Decoder{Budget: 1 << 20}
		_, err := d.Decode(&order, Shape{O: 4, KH: 1, KW: 1, I: 4}, [][]byte{w.b})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("weight %d of %d: %v, want %q", tt.at, tt.n, err, tt.want)
		}
	}
}
