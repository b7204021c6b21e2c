package picture

import "errors"

var (
	errCodes = errors.New("more codes than their bits distinguish")
	errBits  = errors.New("a scan ends early, or has an unknown code")
)

// huffman decodes the symbols of one table.
type huffman struct {
	// short has the symbols of codes of up to shortBits bits, by the bits that start with them: the length of the code
	// above the symbol, 0 for longer codes.
	short [1 << shortBits]uint16
	// end is the first code after those of a length, with zeros behind for 16 bits; offset leads from a code to its symbol.
	end     [17]uint32
	offset  [17]int32
	symbols [256]byte
}

const shortBits = 9

// build makes the table from the number of codes of each length, 1 to 16, and the symbols in the order of their codes.
func (t *huffman) build(counts, symbols []byte) error {
	*t = huffman{}
	copy(t.symbols[:], symbols)
	code, next := uint32(0), int32(0)
	for i, count := range counts {
		n := i + 1
		t.offset[n] = next - int32(code)
		if code+uint32(count) > 1<<n {
			return errCodes
		}
		if n <= shortBits {
			at := code << (shortBits - n)
			for _, s := range symbols[next : next+int32(count)] {
				for range 1 << (shortBits - n) {
					t.short[at] = uint16(n)<<8 | uint16(s)
					at++
				}
			}
		}
		code, next = code+uint32(count), next+int32(count)
		t.end[n] = code << (16 - n)
		code <<= 1
	}
	return nil
}

// bitReader reads the codes of a scan up to the next marker.
type bitReader struct {
	file []byte
	at   int
	acc  uint64 // its lowest n bits are read next
	n    int
	err  error // the first
}

// fill reads bytes while there is space for one; 0xff is followed by 0, else it starts a marker.
func (r *bitReader) fill() {
	for r.n <= 56 && r.at < len(r.file) {
		c := r.file[r.at]
		if c == 0xff {
			if r.at+1 == len(r.file) || r.file[r.at+1] != 0 {
				return
			}
			r.at++
		}
		r.at++
		r.acc, r.n = r.acc<<8|uint64(c), r.n+8
	}
}

// peek returns the next 16 bits, with zeros behind the last.
func (r *bitReader) peek() uint32 {
	if r.n < 16 {
		if r.fill(); r.n < 16 {
			return uint32(r.acc<<(16-r.n)) & 0xffff
		}
	}
	return uint32(r.acc>>(r.n-16)) & 0xffff
}

// skip consumes peeked bits.
func (r *bitReader) skip(n int) {
	if r.n -= n; r.n < 0 {
		r.n, r.err = 0, errBits
	}
}

// bits returns the next n bits, at most 16.
func (r *bitReader) bits(n int) int32 {
	v := r.peek() >> (16 - n)
	r.skip(n)
	return int32(v)
}

// symbol decodes a symbol, 0 after an error.
func (r *bitReader) symbol(t *huffman) byte {
	next := r.peek()
	if s := t.short[next>>(16-shortBits)]; s != 0 {
		r.skip(int(s >> 8))
		return byte(s)
	}
	for n := shortBits + 1; n <= 16; n++ {
		if next < t.end[n] {
			r.skip(n)
			return t.symbols[byte(int32(next>>(16-n))+t.offset[n])]
		}
	}
	r.err = errBits
	return 0
}

// value reads a signed number of n bits: those that start with 0 are negative.
func (r *bitReader) value(n int) int32 {
	v := r.bits(n)
	if n > 0 && v < 1<<(n-1) {
		v -= 1<<n - 1
	}
	return v
}
