package isa

import "strconv"

// Format appends a command's text to b: its name and its fields, with the names of enumerated
// values, as in "NPU_OP_POOL pooling_mode=AVERAGE".
func (s *Step) Format(b []byte) []byte {
	b = append(b, s.Name...)
	if s.IsAddress() {
		return strconv.AppendUint(append(b, " 0x"...), s.Address(), 16)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		b = append(append(append(b, ' '), f.Name...), '=')
		v := s.Field(f)
		if v < uint64(len(f.Enum)) && f.Enum[v] != "" {
			b = append(b, f.Enum[v]...)
			continue
		}
		b = strconv.AppendUint(b, v, 10)
	}
	return b
}
