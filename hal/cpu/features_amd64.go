package cpu

import "golang.org/x/sys/cpu"

var features = []Feature{
	{"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA},
	{"avx512f", cpu.X86.HasAVX512F}, {"avx512_vnni", cpu.X86.HasAVX512VNNI}, {"avx512_bf16", cpu.X86.HasAVX512BF16},
	{"avx_vnni", cpu.X86.HasAVXVNNI}, {"amx_int8", cpu.X86.HasAMXInt8},
}
