//go:build !purego && (amd64 || arm64)

package simd

// The functions below take n blocks of lanes elements; n > 0.

//go:noescape
func addLanes(n int, dst, a, b *float32)

//go:noescape
func subLanes(n int, dst, a, b *float32)

//go:noescape
func mulLanes(n int, dst, a, b *float32)

//go:noescape
func divLanes(n int, dst, a, b *float32)

//go:noescape
func maximumLanes(n int, dst, a, b *float32)

//go:noescape
func minimumLanes(n int, dst, a, b *float32)

//go:noescape
func addScaledLanes(n int, dst, a, b *float32, alpha float32)

//go:noescape
func clampLanes(n int, dst, src *float32, low, high float32)

//go:noescape
func leakyReLULanes(n int, dst, src *float32, slope float32)

//go:noescape
func absLanes(n int, dst, src *float32)

//go:noescape
func negLanes(n int, dst, src *float32)

//go:noescape
func signLanes(n int, dst, src *float32)

//go:noescape
func floorLanes(n int, dst, src *float32)

//go:noescape
func ceilLanes(n int, dst, src *float32)

//go:noescape
func truncLanes(n int, dst, src *float32)

//go:noescape
func roundLanes(n int, dst, src *float32)

//go:noescape
func reciprocalLanes(n int, dst, src *float32)

//go:noescape
func sqrtLanes(n int, dst, src *float32)

//go:noescape
func rsqrtLanes(n int, dst, src *float32)

//go:noescape
func sigmoidLanes(n int, dst, src *float32)

//go:noescape
func tanhLanes(n int, dst, src *float32)

//go:noescape
func geluLanes(n int, dst, src *float32)

//go:noescape
func geluTanhLanes(n int, dst, src *float32)

//go:noescape
func equalLanes(n int, dst *uint8, a, b *float32)

//go:noescape
func notEqualLanes(n int, dst *uint8, a, b *float32)

//go:noescape
func lessLanes(n int, dst *uint8, a, b *float32)

//go:noescape
func lessEqualLanes(n int, dst *uint8, a, b *float32)

//go:noescape
func addInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func subInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func mulInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func maxInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func minInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func bitAndInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func bitOrInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func bitXorInt32Lanes(n int, dst, a, b *int32)

//go:noescape
func clampInt32Lanes(n int, dst, src *int32, low, high int32)

//go:noescape
func absInt32Lanes(n int, dst, src *int32)

//go:noescape
func negInt32Lanes(n int, dst, src *int32)

//go:noescape
func equalInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func notEqualInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func lessInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func lessEqualInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func andInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func orInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func norInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func xorInt32Lanes(n int, dst *uint8, a, b *int32)

//go:noescape
func selectLanes(n int, dst *uint32, mask *uint8, a, b *uint32)

//go:noescape
func erfLanes(n int, dst, src *float32)

//go:noescape
func expm1Lanes(n int, dst, src *float32)

//go:noescape
func log1pLanes(n int, dst, src *float32)

//go:noescape
func eluLanes(n int, dst, src *float32, negative, inner, positive float32)

//go:noescape
func logLanes(n int, dst, src *float32, scale, low, high float32)

// sineLanes reports whether an element is beyond sineMost, or NaN.
//
//go:noescape
func sineLanes(n int, dst, src *float32, shift float32) (beyond int32)
