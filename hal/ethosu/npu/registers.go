package npu

import "github.com/etrun-go/etrun/hal/ethosu/isa"

// registers are the register values that operations read. They persist between operations; all are
// 0 initially.
type registers struct {
	narrow [256]uint16 // cmd0, from 0x100
	wide   [256]uint64 // cmd1: bits 47:32 are the parameter, bits 31:0 the second word
}

func (r *registers) set(s *isa.Step) {
	if s.Code&isa.Wide != 0 {
		r.wide[s.Code&0xff] = uint64(s.Param)<<32 | uint64(s.Payload)
		return
	}
	r.narrow[s.Code&0xff] = s.Param
}

// get returns a 16-bit register.
func (r *registers) get(c isa.Code) int { return int(r.narrow[c&0xff]) }

// m1 returns the value of a register that stores the value minus 1.
func (r *registers) m1(c isa.Code) int { return r.get(c) + 1 }

// bits returns a field of a 16-bit register.
func (r *registers) bits(c isa.Code, lsb, width uint) int {
	return r.get(c) >> lsb & (1<<width - 1)
}

// signed returns a 16-bit register as a signed or unsigned number.
func (r *registers) signed(c isa.Code, isSigned bool) int32 {
	if v := r.narrow[c&0xff]; isSigned {
		return int32(int16(v))
	} else {
		return int32(v)
	}
}

// address returns the unsigned 40-bit value of an address register.
func (r *registers) address(c isa.Code) int64 { return int64(r.wide[c&0xff] & (1<<40 - 1)) }

// stride returns the signed 40-bit value of a stride register.
func (r *registers) stride(c isa.Code) int64 { return int64(r.wide[c&0xff]<<24) >> 24 }

// word returns the second word of a wide register.
func (r *registers) word(c isa.Code) uint32 { return uint32(r.wide[c&0xff]) }

// high returns a field of a wide register's parameter.
func (r *registers) high(c isa.Code, lsb, width uint) int {
	return int(r.wide[c&0xff] >> (32 + lsb) & (1<<width - 1))
}
