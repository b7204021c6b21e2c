//go:build !amd64 && !(linux && arm64)

package cpu

// ReadHardware returns the processor's extensions that kernels are selected by: none.
func ReadHardware() Hardware { return Hardware{} }
