package cpu

import "golang.org/x/sys/cpu"

// Feature is an instruction set extension that kernels may use.
type Feature struct {
	Name string // as /proc/cpuinfo spells it
	Has  bool
}

// Features lists the extensions of this processor's architecture that matter to
// numeric kernels, and whether it has them.
func Features() []Feature { return features[:] }

// x86 and arm64 rows share the list: those of the other architecture are all false.
var features = [...]Feature{
	{"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA}, {"avx512f", cpu.X86.HasAVX512F},
	{"avx512_vnni", cpu.X86.HasAVX512VNNI}, {"avx_vnni", cpu.X86.HasAVXVNNI}, {"avx512_bf16", cpu.X86.HasAVX512BF16}, {"amx_int8", cpu.X86.HasAMXInt8},
	{"asimd", cpu.ARM64.HasASIMD}, {"asimdhp", cpu.ARM64.HasASIMDHP}, {"asimddp", cpu.ARM64.HasASIMDDP}, {"i8mm", cpu.ARM64.HasI8MM}, {"sve", cpu.ARM64.HasSVE}, {"sve2", cpu.ARM64.HasSVE2},
}
