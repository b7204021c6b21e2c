package cpu

// Feature is an instruction set extension that numeric kernels may use.
type Feature struct {
	Name string // as in /proc/cpuinfo
	Has  bool
}

// Features returns the extensions used on this architecture, and whether the processor has them. GODEBUG
// can turn them off.
func Features() []Feature { return features }
