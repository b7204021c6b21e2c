package cpu

import "sync"

// cpuid executes the instruction of that name.
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// ReadHardware returns the processor's extensions.
var ReadHardware = sync.OnceValue(func() (h Hardware) {
	last, b, c, d := cpuid(0, 0)
	if last < 7 {
		return h
	}
	amd := b == 0x68747541 && d == 0x69746e65 && c == 0x444d4163 // AuthenticAMD
	version, _, _, _ := cpuid(1, 0)
	_, b, c, d = cpuid(7, 0)
	has := func(register uint32, bit int) bool { return register>>bit&1 != 0 }
	h = Hardware{GFNI: has(c, 8), AVX512VNNI: has(c, 11), AVX512FP16: has(d, 23), AMXInt8: has(d, 25)}
	h.Zen4 = amd && version>>8&0xf+version>>20&0xff == 25 && has(b, 16) // family 25 with AVX-512
	return h
})
