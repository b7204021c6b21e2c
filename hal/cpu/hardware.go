package cpu

// Hardware is what C libraries select kernels by, as the processor reports it: GODEBUG has no effect.
type Hardware struct {
	AVX512VNNI, AVX512FP16, GFNI, AMXInt8 bool
	Zen4                                  bool // of AMD
	NEONFP16                              bool // arithmetic of half precision on arm64
}
