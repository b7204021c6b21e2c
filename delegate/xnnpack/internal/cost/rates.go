package cost

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
)

// instructionSets have a file of rates each. The files are made by "make rates", which measures the graphs of
// rateGraphs on one thread.
const (
	setAVX512  = "avx512"
	setAMX     = "amx" // AVX-512 with tiles of bytes
	setAVX2    = "avx2"
	setNEON    = "neon"
	setDotprod = "neon_dotprod"
	setI8MM    = "neon_i8mm" // dot products, and products of matrices of bytes
	setNone    = "none"      // no vectors
)

// RatesOf has the rates of the library and of the Go engine by instruction set.
var RatesOf = map[string]*[2]EngineRates{setAVX512: &ratesAVX512, setAMX: &ratesAMX, setAVX2: &ratesAVX2, setNEON: &ratesNEON,
	setDotprod: &ratesDotprod, setI8MM: &ratesI8MM, setNone: &ratesNone}

// Selected are the rates of the engines on this processor. The library selects its kernels itself.
var Selected = [2]*EngineRates{ByLibrary: &RatesOf[librarySet()][ByLibrary], ByGo: &RatesOf[GoSet()][ByGo]}

func librarySet() string {
	switch h := cpu.ReadHardware(); {
	case UsesTiles(h):
		return setAMX
	case h.AVX512VNNI:
		return setAVX512
	}
	return GoSet()
}

func GoSet() string {
	switch level := simd.Level(); {
	case level == "neon" && cpu.Has("i8mm"):
		return setI8MM
	case level == "neon" && cpu.Has("asimddp"):
		return setDotprod
	case RatesOf[level] != nil:
		return level
	}
	return setNone
}

// DebianBuild is the build of Debian's version of the library, see [xnn.Soname].
const DebianBuild = "4ea82e595b36"

// UsesTiles reports whether Debian's version of the library multiplies bytes in tiles.
func UsesTiles(h cpu.Hardware) bool { return h.AMXInt8 }
