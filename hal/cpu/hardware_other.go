//go:build !amd64

package cpu

// ReadHardware returns the processor's extensions: none of x86.
func ReadHardware() Hardware { return Hardware{} }
