package cpu

// Hardware is what C libraries select x86 kernels by, as the processor reports it: GODEBUG has no effect.
type Hardware struct {
	AVX512VNNI, AVX512FP16, GFNI, AMXInt8 bool
	Zen4                                  bool // of AMD
}
