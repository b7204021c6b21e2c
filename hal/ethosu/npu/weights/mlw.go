package weights

import (
	"encoding/binary"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// maxSlice is the largest number of weights in a slice (field SLICELEN).
const maxSlice = 1 << 15

// mlw decodes the standard weight stream: slices of Golomb-Rice coded indices into a palette,
// interleaved with runs of zeros.
type mlw struct {
	in bitReader

	palette   [32]int16
	palSize   int // entries of the palette
	palBits   uint
	directOff int // offset of indices past the palette
	paletted  bool
	weights   [maxSlice]int16 // values of the current slice
	runs      [maxSlice + 1]int
	count     int  // weights in the slice
	leading   bool // runs[0] precedes the first weight
	hasRuns   bool
	next      int // index of the next weight
	zeros     int // zeros before it
}

// reset starts a stream.
func (m *mlw) reset(data []byte) {
	m.in, m.paletted, m.count, m.next, m.zeros = bitReader{data: data}, false, 0, 0, 0
}

// fill appends up to cap(dst)-len(dst) decoded weights; at the end of the stream it returns dst
// unchanged.
func (m *mlw) fill(dst []int16) ([]int16, error) {
	for len(dst) < cap(dst) {
		if m.zeros > 0 {
			n := min(m.zeros, cap(dst)-len(dst))
			at := len(dst)
			dst = dst[:at+n]
			clear(dst[at:])
			m.zeros -= n
			continue
		}
		if m.next == m.count {
			if ok, err := m.slice(); !ok {
				return dst, err
			}
			continue
		}
		dst = append(dst, m.weights[m.next])
		m.next++
		if m.hasRuns {
			m.zeros = m.runs[m.runAfter(m.next-1)]
		}
	}
	return dst, nil
}

// runAfter returns the index of the run that follows weight i.
func (m *mlw) runAfter(i int) int {
	if m.leading {
		return i + 1
	}
	return i
}

const (
	zdivNone         = 6 // no zero runs
	zdivEnd          = 7 // end of the stream, or padding to a byte
	wdivUncompressed = 7
)

// slice reads the next slice; ok is false at the end of the stream.
func (m *mlw) slice() (ok bool, err error) {
	m.count, m.next = 0, 0
	zdiv := m.in.get(3)
	for zdiv == zdivEnd {
		m.in.align()
		m.paletted = false
		if m.in.left() <= 0 {
			return false, nil
		}
		zdiv = m.in.get(3)
	}
	count := m.in.get(15) + 1
	wdiv, truncated, newPalette := m.in.get(3), m.in.get(1) == 1, m.in.get(1) == 1
	switch {
	case m.in.left() < 0:
		return false, nil // fewer bits than a header
	case zdiv > 3 && zdiv != zdivNone, wdiv == 6:
		return false, isa.Malformed("slice with zero divisor %d and weight divisor %d", zdiv, wdiv)
	case !newPalette && !m.paletted:
		return false, isa.Malformed("first slice without a palette")
	}
	m.paletted = true
	if newPalette {
		m.readPalette()
	}
	c := chunks{mlw: m, count: count, truncated: truncated, wdiv: uint(wdiv), zdiv: uint(zdiv), runs: zdiv != zdivNone}
	if wdiv == wdivUncompressed {
		c.uncompressed, c.wdiv = true, m.indexBits()
	}
	if err := c.read(newPalette); err != nil {
		return false, err
	}
	m.count, m.hasRuns, m.leading, m.zeros = count, c.runs, newPalette, 0
	if c.runs && newPalette {
		m.zeros = m.runs[0]
	}
	return true, nil
}

func (m *mlw) readPalette() {
	m.directOff = m.in.get(5)
	m.palSize = m.in.get(5)
	if m.palSize > 0 {
		m.palSize++
	}
	m.palBits = uint(m.in.get(3) + 2)
	for i := range m.palSize {
		m.palette[i] = int16(m.in.get(m.palBits))
	}
}

// indexBits is the width of an index that is stored without compression.
func (m *mlw) indexBits() uint {
	if m.palSize == 0 {
		return m.palBits
	}
	n := uint(0)
	for 1<<n < m.palSize {
		n++
	}
	return n
}

// value turns an index into a weight: bit 0 is the sign, the others the magnitude.
func (m *mlw) value(index int) (int16, error) {
	if index > 511 {
		return 0, isa.Malformed("weight index %d, want at most 511", index)
	}
	v := int16(index - m.palSize + m.directOff)
	if index < m.palSize {
		v = m.palette[index]
	}
	if v&1 == 1 {
		return -(v >> 1), nil
	}
	return v >> 1, nil
}

// symbols are the quotients of one chunk.
type symbols struct {
	q     [12]int
	n     int
	carry int // value of the symbol that continues in the next chunk
}

// chunks reads the body of a slice: chunks of unary coded quotients, each followed by
// the remainders of the chunk before.
type chunks struct {
	*mlw
	count        int  // weights of the slice
	truncated    bool // symbols end after the code 2
	uncompressed bool // remainders only
	runs         bool
	wdiv, zdiv   uint // bits of a remainder
}

func (c *chunks) read(newPalette bool) error {
	zcount := c.count
	if newPalette {
		zcount++
	}
	var w, z, wPrev, zPrev symbols
	wpos, zpos, wdone, zdone := 0, 0, 0, 0
	for {
		balance := 0
		if c.runs {
			balance = wpos - zpos
		}
		wOn := balance < 8 && wpos < c.count
		zOn := c.runs && balance >= 0 && zpos < zcount
		unary := 0
		if wOn && !c.uncompressed {
			unary = c.in.get(12)
		}
		z.n, w.n = 0, 0
		if zOn {
			c.zeroQuotients(&z)
		}
		if wOn {
			c.weightQuotients(&w, unary)
		}
		wpos, zpos = wpos+w.n, zpos+z.n
		for _, q := range wPrev.q[:min(wPrev.n, c.count-wdone)] {
			v, err := c.value(q<<c.wdiv + c.in.get(c.wdiv))
			if err != nil {
				return err
			}
			c.weights[wdone] = v
			wdone++
		}
		for _, q := range zPrev.q[:min(zPrev.n, zcount-zdone)] {
			c.mlw.runs[zdone] = q<<c.zdiv + c.in.get(c.zdiv)
			zdone++
		}
		if c.in.left() < 0 {
			return isa.Malformed("weight stream ends inside a slice")
		}
		if !wOn && !zOn {
			return nil
		}
		wPrev, zPrev = w, z
	}
}

func (c *chunks) zeroQuotients(z *symbols) {
	n := 12
	if c.zdiv == 3 {
		n = 8
	}
	bits := c.in.get(uint(n))
	for i := range n {
		if bits>>i&1 == 1 {
			z.carry++
			continue
		}
		z.q[z.n] = z.carry
		z.n, z.carry = z.n+1, 0
	}
}

func (c *chunks) weightQuotients(w *symbols, unary0 int) {
	n := 12
	if c.uncompressed && c.wdiv > 5 {
		n = 8
	}
	ones := uint(0)
	for i := range n {
		ones += uint(unary0 >> i & 1)
	}
	unary1 := c.in.get(ones)
	for i := range n {
		code := unary0 >> i & 1
		if code == 1 {
			code += unary1 & 1
			unary1 >>= 1
		}
		w.carry += code
		if code < 2 || c.truncated {
			w.q[w.n] = w.carry
			w.n, w.carry = w.n+1, 0
		}
	}
}

// bitReader reads bits, the lowest of a byte first; past the end it returns zeros.
type bitReader struct {
	data []byte
	pos  int // of the next bit
}

// get reads n bits, at most 16.
func (b *bitReader) get(n uint) int {
	at := b.pos >> 3
	var v uint64
	if at+4 <= len(b.data) {
		v = uint64(binary.LittleEndian.Uint32(b.data[at:]))
	} else {
		for i := at; i < len(b.data); i++ {
			v |= uint64(b.data[i]) << (8 * (i - at))
		}
	}
	v >>= b.pos & 7
	b.pos += int(n)
	return int(v & (1<<n - 1))
}

// align advances to the next whole byte.
func (b *bitReader) align() { b.pos = (b.pos + 7) &^ 7 }

// left returns the number of unread bits, negative if more were read than exist.
func (b *bitReader) left() int { return 8*len(b.data) - b.pos }
