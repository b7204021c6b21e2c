//go:build purego || !(amd64 || arm64)

package simd

// Nothing calls these: there are no whole blocks without vectors.

func addLanes(n int, dst, a, b *float32)                                   {}
func subLanes(n int, dst, a, b *float32)                                   {}
func mulLanes(n int, dst, a, b *float32)                                   {}
func divLanes(n int, dst, a, b *float32)                                   {}
func maximumLanes(n int, dst, a, b *float32)                               {}
func minimumLanes(n int, dst, a, b *float32)                               {}
func addScaledLanes(n int, dst, a, b *float32, alpha float32)              {}
func clampLanes(n int, dst, src *float32, low, high float32)               {}
func leakyReLULanes(n int, dst, src *float32, slope float32)               {}
func absLanes(n int, dst, src *float32)                                    {}
func negLanes(n int, dst, src *float32)                                    {}
func signLanes(n int, dst, src *float32)                                   {}
func floorLanes(n int, dst, src *float32)                                  {}
func ceilLanes(n int, dst, src *float32)                                   {}
func truncLanes(n int, dst, src *float32)                                  {}
func roundLanes(n int, dst, src *float32)                                  {}
func reciprocalLanes(n int, dst, src *float32)                             {}
func sqrtLanes(n int, dst, src *float32)                                   {}
func rsqrtLanes(n int, dst, src *float32)                                  {}
func sigmoidLanes(n int, dst, src *float32)                                {}
func tanhLanes(n int, dst, src *float32)                                   {}
func geluLanes(n int, dst, src *float32)                                   {}
func geluTanhLanes(n int, dst, src *float32)                               {}
func equalLanes(n int, dst *uint8, a, b *float32)                          {}
func notEqualLanes(n int, dst *uint8, a, b *float32)                       {}
func lessLanes(n int, dst *uint8, a, b *float32)                           {}
func lessEqualLanes(n int, dst *uint8, a, b *float32)                      {}
func addInt32Lanes(n int, dst, a, b *int32)                                {}
func subInt32Lanes(n int, dst, a, b *int32)                                {}
func mulInt32Lanes(n int, dst, a, b *int32)                                {}
func maxInt32Lanes(n int, dst, a, b *int32)                                {}
func minInt32Lanes(n int, dst, a, b *int32)                                {}
func bitAndInt32Lanes(n int, dst, a, b *int32)                             {}
func bitOrInt32Lanes(n int, dst, a, b *int32)                              {}
func bitXorInt32Lanes(n int, dst, a, b *int32)                             {}
func clampInt32Lanes(n int, dst, src *int32, low, high int32)              {}
func absInt32Lanes(n int, dst, src *int32)                                 {}
func negInt32Lanes(n int, dst, src *int32)                                 {}
func equalInt32Lanes(n int, dst *uint8, a, b *int32)                       {}
func notEqualInt32Lanes(n int, dst *uint8, a, b *int32)                    {}
func lessInt32Lanes(n int, dst *uint8, a, b *int32)                        {}
func lessEqualInt32Lanes(n int, dst *uint8, a, b *int32)                   {}
func andInt32Lanes(n int, dst *uint8, a, b *int32)                         {}
func orInt32Lanes(n int, dst *uint8, a, b *int32)                          {}
func norInt32Lanes(n int, dst *uint8, a, b *int32)                         {}
func xorInt32Lanes(n int, dst *uint8, a, b *int32)                         {}
func selectLanes(n int, dst *uint32, mask *uint8, a, b *uint32)            {}
func erfLanes(n int, dst, src *float32)                                    {}
func expm1Lanes(n int, dst, src *float32)                                  {}
func log1pLanes(n int, dst, src *float32)                                  {}
func eluLanes(n int, dst, src *float32, negative, inner, positive float32) {}
func logLanes(n int, dst, src *float32, scale, low, high float32)          {}
func sineLanes(n int, dst, src *float32, shift float32) int32              { return 0 }
