package cpu

import "slices"

// Feature is an instruction set extension that numeric kernels may use.
type Feature struct {
	Name string // as in /proc/cpuinfo
	Has  bool
}

// Features returns the extensions used on this architecture, and whether the processor has them. GODEBUG
// can turn them off.
func Features() []Feature { return features }

// Has reports whether the processor has an extension of Features.
func Has(name string) bool {
	return slices.ContainsFunc(features, func(f Feature) bool { return f.Name == name && f.Has })
}
