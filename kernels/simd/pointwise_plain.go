//go:build purego || !(amd64 || arm64)

package simd

func add(dst, a, b []float32)                      { addGo(dst, a, b) }
func addScaled(dst, a, b []float32, alpha float32) { addScaledGo(dst, a, b, alpha) }
func sub(dst, a, b []float32)                      { subGo(dst, a, b) }
func mul(dst, a, b []float32)                      { mulGo(dst, a, b) }
func div(dst, a, b []float32)                      { divGo(dst, a, b) }
func maximum(dst, a, b []float32)                  { maximumGo(dst, a, b) }
func minimum(dst, a, b []float32)                  { minimumGo(dst, a, b) }
func clamp(dst, src []float32, low, high float32)  { clampGo(dst, src, low, high) }
func leakyReLU(dst, src []float32, slope float32)  { leakyReLUGo(dst, src, slope) }
func sqrt(dst, src []float32)                      { sqrtGo(dst, src) }
func sigmoid(dst, src []float32)                   { sigmoidGo(dst, src) }
func tanh(dst, src []float32)                      { tanhGo(dst, src) }
func gelu(dst, src []float32)                      { geluGo(dst, src) }
func geluTanh(dst, src []float32)                  { geluTanhGo(dst, src) }
