package cpu

// Feature is an instruction set extension that numeric kernels may use.
type Feature struct {
	Name string // as /proc/cpuinfo spells it
	Has  bool
}

// Features lists the extensions that matter on this architecture, and whether the
// processor has them.
func Features() []Feature { return features }
