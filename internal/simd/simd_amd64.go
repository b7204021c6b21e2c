//go:build !purego

package simd

import "golang.org/x/sys/cpu"

const (
	lanes     = 8
	few       = 128 // products are computed without vectors
	tapsBlock = 64
	neon      = false
)

// vector reports AVX2 and FMA, which came together in every processor but a few
// early ones.
var vector = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// avx512 reports the part of AVX-512 that every server with any of it has. Matrix products,
// conversions and activations use it: the rest is bound by memory.
var avx512 = vector && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW

// avxVNNI reports the dot products of processors without AVX-512.
var avxVNNI = vector && cpu.X86.HasAVXVNNI

var level = chosenLevel()

func chosenLevel() string {
	switch {
	case avx512:
		return "avx512"
	case vector:
		return "avx2"
	}
	return "go"
}
