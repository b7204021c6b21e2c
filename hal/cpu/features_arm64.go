package cpu

import "golang.org/x/sys/cpu"

var features = []Feature{
	{"asimd", cpu.ARM64.HasASIMD}, {"asimdhp", cpu.ARM64.HasASIMDHP}, {"asimddp", cpu.ARM64.HasASIMDDP},
	{"i8mm", cpu.ARM64.HasI8MM}, {"sve", cpu.ARM64.HasSVE}, {"sve2", cpu.ARM64.HasSVE2},
}
