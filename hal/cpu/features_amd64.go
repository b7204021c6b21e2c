package cpu

import "golang.org/x/sys/cpu"

var features = []Feature{
	{"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA},
	{"avx512f", cpu.X86.HasAVX512F}, {"avx512_vnni", cpu.X86.HasAVX512VNNI}, {"avx512_bf16", cpu.X86.HasAVX512BF16},
	{"avx512_fp16", cpu.X86.HasAVX512F && hasFP16()}, {"gfni", cpu.X86.HasAVX512GFNI},
	{"avx_vnni", cpu.X86.HasAVXVNNI}, {"amx_int8", cpu.X86.HasAMXInt8},
}

// cpuid executes the instruction of that name.
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// hasFP16 reads a feature that the package of cpu does not know.
func hasFP16() bool {
	if last, _, _, _ := cpuid(0, 0); last < 7 {
		return false
	}
	_, _, _, edx := cpuid(7, 0)
	return edx>>23&1 != 0
}

// zen4: family 25 of AMD with AVX-512.
var zen4 = func() bool {
	_, ebx, ecx, edx := cpuid(0, 0)
	eax, _, _, _ := cpuid(1, 0)
	amd := ebx == 0x68747541 && edx == 0x69746e65 && ecx == 0x444d4163 // AuthenticAMD
	return amd && eax>>8&15+eax>>20&255 == 25 && cpu.X86.HasAVX512F
}()
