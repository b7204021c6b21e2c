package picture

import "fmt"

// jpegScan is a scan: some coefficients of some components, and for progressive files some bits of them.
type jpegScan struct {
	bitReader
	components []*jpegComponent
	tables     [][2]*huffman
	averages   []int32 // of the block before, by component
	first      int     // coefficients, in zigzag order
	last       int
	refine     bool // one bit more of coefficients, of which some are known
	low        int  // the bits below those of the scan
	empty      int32
	decode     func(b *[64]int16, component int)
	block      [64]int16 // of sequential files
}

// open reads the segment of a scan.
func (d *jpegFile) open(b []byte) (*jpegScan, error) {
	if len(b) < 1 || b[0] < 1 || b[0] > 4 || len(b) != 4+2*int(b[0]) {
		return nil, errLength
	}
	n, blocks := int(b[0]), 0
	s := &jpegScan{bitReader: bitReader{file: d.file, at: d.at}, averages: make([]int32, n)}
	for i := range n {
		at, tables := d.frame.find(b[1+2*i]), b[2+2*i]
		if at < 0 || tables>>4 > 3 || tables&15 > 3 {
			return nil, fmt.Errorf("component %d with tables %x", b[1+2*i], tables)
		}
		c := d.frame.components[at]
		for _, other := range s.components {
			if other == c {
				return nil, fmt.Errorf("component %d twice", c.id)
			}
		}
		s.components = append(s.components, c)
		s.tables = append(s.tables, [2]*huffman{&d.huffman[0][tables>>4], &d.huffman[1][tables&15]})
		blocks += c.across * c.down
	}
	if n > 1 && blocks > 10 {
		return nil, fmt.Errorf("%d blocks in an MCU, want at most 10", blocks)
	}
	if err := s.progression(d.frame.progressive, b[1+2*n:]); err != nil {
		return nil, err
	}
	return s, d.latch(s)
}

// progression selects how blocks are decoded by the range of coefficients, and of their bits.
func (s *jpegScan) progression(progressive bool, b []byte) error {
	s.first, s.last, s.decode = 0, 63, s.sequential
	if !progressive {
		return nil
	}
	high, low := b[2]>>4, b[2]&15
	s.first, s.last, s.refine, s.low = int(b[0]), int(b[1]), high > 0, int(low)
	badRange := s.last > 63 || s.first > s.last || (s.first == 0) != (s.last == 0) || s.first > 0 && len(s.components) > 1
	if badRange || low > 13 || s.refine && high != low+1 {
		return fmt.Errorf("progression %x", b)
	}
	switch {
	case s.first == 0 && !s.refine:
		s.decode = s.average
	case s.first == 0:
		s.decode = s.averageBit
	case !s.refine:
		s.decode = s.run
	default:
		s.decode = s.refineRun
	}
	for _, c := range s.components {
		for i := s.first; i <= min(s.last, len(c.missing)-1); i++ {
			c.missing[i] = int8(low)
		}
	}
	return nil
}

// sequential decodes a block.
func (s *jpegScan) sequential(b *[64]int16, component int) {
	*b = [64]int16{}
	s.average(b, component)
	table := s.tables[component][1]
	for k := 1; k < 64; k++ {
		symbol := s.symbol(table)
		zeros, size := int(symbol>>4), int(symbol&15)
		if size == 0 && zeros < 15 {
			return
		}
		k += zeros
		if size > 0 && k < 64 {
			b[zigzag[k]] = int16(s.value(size))
		} else if size > 0 {
			s.err = errBits
		}
	}
}

// average decodes the first coefficient, the difference from that of the block before.
func (s *jpegScan) average(b *[64]int16, component int) {
	size := int(s.symbol(s.tables[component][0]))
	if size > 15 {
		s.err = errBits
		return
	}
	s.averages[component] += s.value(size)
	b[0] = int16(s.averages[component] << s.low)
}

func (s *jpegScan) averageBit(b *[64]int16, _ int) { b[0] |= int16(s.bits(1) << s.low) }

// run decodes other coefficients of a block.
func (s *jpegScan) run(b *[64]int16, _ int) {
	if s.empty > 0 {
		s.empty--
		return
	}
	for k := s.first; k <= s.last; k++ {
		symbol := s.symbol(s.tables[0][1])
		zeros, size := int(symbol>>4), int(symbol&15)
		if size == 0 && zeros < 15 {
			s.empty = 1<<zeros + s.bits(zeros) - 1
			return
		}
		k += zeros
		if size > 0 && k < 64 {
			b[zigzag[k]] = int16(s.value(size) << s.low)
		} else if size > 0 {
			s.err = errBits
		}
	}
}

// refineRun decodes one bit more of coefficients.
func (s *jpegScan) refineRun(b *[64]int16, _ int) {
	k := s.first
	for s.empty == 0 && k <= s.last {
		symbol := s.symbol(s.tables[0][1])
		zeros, size := int(symbol>>4), int(symbol&15)
		if size == 0 && zeros < 15 {
			s.empty = 1<<zeros + s.bits(zeros)
			break
		}
		value := int16(0)
		if size > 0 {
			value = int16((2*s.bits(1) - 1) << s.low)
		}
		if k = s.refineKnown(b, k, zeros); k > s.last {
			break
		}
		if size > 0 {
			b[zigzag[k]] = value
		}
		k++
	}
	if s.empty > 0 {
		s.refineKnown(b, k, 64)
		s.empty--
	}
}

// refineKnown reads a bit of each coefficient that is not zero, and returns the index after a number of those that are.
func (s *jpegScan) refineKnown(b *[64]int16, k, zeros int) int {
	for bit := int16(1) << s.low; k <= s.last; k++ {
		c := &b[zigzag[k]]
		switch {
		case *c == 0 && zeros == 0:
			return k
		case *c == 0:
			zeros--
		case s.bits(1) == 0 || *c&bit != 0:
		case *c > 0:
			*c += bit
		default:
			*c -= bit
		}
	}
	return k
}

// read decodes all blocks of a scan. check is called at each row of MCUs.
func (d *jpegFile) read(s *jpegScan, check func() error) error {
	f, sequence := d.frame, 0
	across, down := f.mcusX, f.mcusY
	if len(s.components) == 1 { // without the blocks behind the picture's edges
		across, down = ceilDiv(s.components[0].plane.w, 8), ceilDiv(s.components[0].plane.h, 8)
	}
	for y := range down {
		if err := check(); err != nil {
			return err
		}
		for x := range across {
			if sequence > 0 && d.restart > 0 && sequence%d.restart == 0 {
				s.restart(sequence/d.restart - 1)
			}
			s.unit(f, x, y)
			sequence++
			if s.err != nil {
				return s.err
			}
		}
	}
	d.at = s.at
	return nil
}

// unit decodes an MCU.
func (s *jpegScan) unit(f *jpegFrame, x, y int) {
	for i, c := range s.components {
		across, down := c.across, c.down
		if len(s.components) == 1 {
			across, down = 1, 1
		}
		for j := range across * down {
			bx, by := x*across+j%across, y*down+j/across
			if f.progressive {
				s.decode(&c.coefficients[by*f.mcusX*c.across+bx], i)
			} else {
				s.decode(&s.block, i)
				c.transform(&s.block, bx, by)
			}
		}
	}
}

// restart begins again after a marker.
func (s *jpegScan) restart(count int) {
	for s.at+1 < len(s.file) && (s.file[s.at] != 0xff || s.file[s.at+1] == 0 || s.file[s.at+1] == 0xff) { // unread bytes, and fill bytes
		s.at++
	}
	if s.at+1 >= len(s.file) || s.file[s.at+1] != byte(markerRST0+count&7) {
		s.err = errBits
		return
	}
	s.at, s.acc, s.n, s.empty = s.at+2, 0, 0, 0
	clear(s.averages)
}

// samples decodes all scans to the planes of the components. check is called often, and ends it with its error.
func (d *jpegFile) samples(check func() error) error {
	b, err := d.scan()
	if err != nil {
		return err
	}
	d.allocate()
	for ; b != nil; b, err = d.scan() {
		at := d.at
		s, err := d.open(b)
		if err == nil {
			err = d.read(s, check)
		}
		if err != nil {
			return fmt.Errorf("scan at byte %d: %w", at, err)
		}
	}
	if err != nil {
		return err
	}
	return d.frame.finish(check)
}

func (d *jpegFile) allocate() {
	for _, c := range d.frame.components {
		n := d.frame.blocks(c)
		c.plane.pix = make([]byte, 64*n)
		c.plane.prepare()
		if d.frame.progressive {
			c.coefficients = make([][64]int16, n)
			for i := range c.missing {
				c.missing[i] = -1
			}
		}
	}
}

// latch keeps the quantization of components for all of their scans.
func (d *jpegFile) latch(s *jpegScan) error {
	for _, c := range s.components {
		if c.table == nil {
			c.table = d.quant[c.quant]
		}
		if c.table == nil {
			return fmt.Errorf("component %d: no quantization table %d", c.id, c.quant)
		}
	}
	return nil
}

// finish transforms the blocks of progressive files. A file without the last bits of low frequencies is
// rejected: libjpeg estimates them.
func (f *jpegFrame) finish(check func() error) error {
	for _, c := range f.components {
		if c.table == nil {
			return fmt.Errorf("no scan of component %d", c.id)
		}
		if c.missing != [len(c.missing)]int8{} {
			return fmt.Errorf("component %d: the last scans are missing", c.id)
		}
		across := f.mcusX * c.across
		for i := range c.coefficients {
			if i%across == 0 {
				if err := check(); err != nil {
					return err
				}
			}
			c.transform(&c.coefficients[i], i%across, i/across)
		}
	}
	return nil
}
