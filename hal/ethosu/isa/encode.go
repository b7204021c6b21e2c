package isa

import "encoding/binary"

// Append adds a command to a stream. payload is the second word of a Wide command,
// and is ignored for others.
func Append(stream []byte, c Code, param uint16, payload uint32) []byte {
	const wide = 1 << 14 // control bits of a command of two words
	word := uint32(c&^Wide) | uint32(param)<<16
	if c&Wide == 0 {
		return binary.LittleEndian.AppendUint32(stream, word)
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(stream, word|wide), payload)
}

// AppendAddress adds a command that sets an address register (40 bits).
func AppendAddress(stream []byte, c Code, address uint64) []byte {
	return Append(stream, c, uint16(address>>32&255), uint32(address))
}

// BeforeStop returns the part of a stream before its NPU_OP_STOP. Errors are *Error.
func BeforeStop(f Family, stream []byte) ([]byte, error) {
	var s Step
	for r := NewReader(f, stream); ; {
		ok, err := r.Next(&s)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, StreamError(len(stream)/4, "", ErrMalformed, "stream ends without NPU_OP_STOP")
		}
		if s.Code == OpStop {
			return stream[:4*s.Word], nil
		}
	}
}
