package weights

import (
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// fwdHeader is the size of the header of a fast weight stream, fwdAlign what its size
// is a multiple of.
const (
	fwdHeader = 32
	fwdAlign  = 32
)

// decodeFWD decodes the U85's fast weight stream: a header, and weights of 8 bits (raw), 4 bits or
// 2 bits. The latter two are indices of a table in the header.
func decodeFWD(data []byte, budget *int) ([]int16, error) {
	if len(data) < fwdHeader {
		return nil, isa.Malformed("fast weight stream of %d bytes, want at least %d for the header", len(data), fwdHeader)
	}
	raw, narrow := data[0]&1 == 1, data[0]&2 != 0
	adjust, body := int16(int8(data[13])), data[fwdHeader:]
	if *budget -= 4 * len(body); *budget < 0 {
		return nil, errBudget
	}
	if raw {
		out := make([]int16, len(body))
		for i, b := range body {
			out[i] = int16(int8(b)) - adjust
		}
		return out, nil
	}
	table := fwdTable(data[:fwdHeader])
	if narrow {
		out := make([]int16, 0, 4*len(body))
		for _, b := range body {
			out = append(out, table[b&3], table[b>>2&3], table[b>>4&3], table[b>>6])
		}
		return out, nil
	}
	out := make([]int16, 0, 2*len(body))
	for _, b := range body {
		out = append(out, table[b&15], table[b>>4])
	}
	return out, nil
}

// fwdTable decodes the table: 16 entries of 9 bits from bit 112, with the sign in bit 0.
func fwdTable(header []byte) (table [16]int16) {
	in := bitReader{data: header, pos: 112}
	for i := range table {
		v := int16(in.get(9))
		table[i] = v >> 1
		if v&1 == 1 {
			table[i] = -(v >> 1)
		}
	}
	return table
}
