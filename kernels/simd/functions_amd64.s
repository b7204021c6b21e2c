//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"
#include "loops_amd64.h"

// Functions of each element for AVX2 and FMA, eight at a time.

// Limits of EXP_PARTS: from expLeast the scale 2^n is a normal number, and up to
// expMost it is one or infinite. Beyond tanhLeast and tanhMost nothing changes.
LANES(two, 0x40000000)
LANES(half, 0x3f000000)
LANES(expLeast, 0xc2ae999a)
LANES(expMost, 0x42b20000)
LANES(tanhMost, 0x41a00000)
LANES(tanhLeast, 0xc1a00000)

// EXP_PARTS makes Y1 = 2^n and Y2 = e^r - 1 of Y0 = n·ln 2 + r, from expLeast to
// expMost. e^x - 1 is Y1·Y2 + (Y1-1) without cancellation. It clobbers Y3.
#define EXP_PARTS \
	VMULPS       log2e<>(SB), Y0, Y1     \
	VROUNDPS     $0, Y1, Y1              \
	VFNMADD231PS ln2Hi<>(SB), Y1, Y0     \
	VFNMADD231PS ln2Lo<>(SB), Y1, Y0     \
	VMOVUPS      expP0<>(SB), Y3         \
	VFMADD213PS  expP1<>(SB), Y0, Y3     \
	VFMADD213PS  expP2<>(SB), Y0, Y3     \
	VFMADD213PS  expP3<>(SB), Y0, Y3     \
	VFMADD213PS  expP4<>(SB), Y0, Y3     \
	VFMADD213PS  expP5<>(SB), Y0, Y3     \
	VMULPS       Y0, Y0, Y2              \
	VFMADD213PS  Y0, Y3, Y2              \
	VCVTPS2DQ    Y1, Y1                  \
	VPADDD       bias<>(SB), Y1, Y1      \
	VPSLLD       $23, Y1, Y1

#define SIGMOID \
	VXORPS      signBit<>(SB), Y0, Y0   \
	VMOVUPS     expLeast<>(SB), Y1      \
	VMAXPS      Y0, Y1, Y0              \
	VMOVUPS     expMost<>(SB), Y1       \
	VMINPS      Y0, Y1, Y0              \
	EXP_PARTS                           \
	VMOVUPS     one<>(SB), Y0           \
	VADDPS      Y0, Y2, Y2              \
	VMULPS      Y1, Y2, Y2              \
	VADDPS      Y0, Y2, Y2              \
	VDIVPS      Y2, Y0, Y0

// func sigmoidLanes(n int, dst, src *float32)
TEXT ·sigmoidLanes(SB), NOSPLIT, $0-24
	UNARY(SIGMOID)

// TANH_OF_HALF makes Y0 = tanh(Y0/2) = m / (m+2), where m = e^Y0 - 1.
#define TANH_OF_HALF \
	VMOVUPS     tanhLeast<>(SB), Y1     \
	VMAXPS      Y0, Y1, Y0              \
	VMOVUPS     tanhMost<>(SB), Y1      \
	VMINPS      Y0, Y1, Y0              \
	EXP_PARTS                           \
	VSUBPS      one<>(SB), Y1, Y0       \
	VFMADD213PS Y0, Y1, Y2              \
	VADDPS      two<>(SB), Y2, Y0       \
	VDIVPS      Y0, Y2, Y0

#define TANH \
	VADDPS Y0, Y0, Y0 \
	TANH_OF_HALF

// func tanhLanes(n int, dst, src *float32)
TEXT ·tanhLanes(SB), NOSPLIT, $0-24
	UNARY(TANH)

LANES(geluSlope, 0x3fcc422a)
LANES(geluCubic, 0x3d922279)

#define GELU_TANH \
	VMOVAPS     Y0, Y7                  \
	VMULPS      Y0, Y0, Y1              \
	VMOVUPS     geluCubic<>(SB), Y2     \
	VFMADD213PS geluSlope<>(SB), Y1, Y2 \
	VMULPS      Y2, Y0, Y0              \
	TANH_OF_HALF                        \
	VADDPS      one<>(SB), Y0, Y0       \
	VMULPS      half<>(SB), Y7, Y7      \
	VMULPS      Y7, Y0, Y0

// func geluTanhLanes(n int, dst, src *float32)
TEXT ·geluTanhLanes(SB), NOSPLIT, $0-24
	UNARY(GELU_TANH)

// erfc(a) = e^(-a²) · t·(erfc0 + t·(erfc1 + …)), t = 1 / (1 + erfcP·a), to within
// 3·10⁻⁸ of itself for a up to 10.
LANES(erfcP, 0x3ec28f5c)
LANES(erfc0, 0x3e5b8ff8)
LANES(erfc1, 0x3e5af585)
LANES(erfc2, 0x3e5177b1)
LANES(erfc3, 0x3e0b67a1)
LANES(erfc4, 0x3e717ae6)
LANES(erfc5, 0xbe2dbf47)
LANES(erfc6, 0x3ebde3a4)
LANES(erfc7, 0xbe87fbb7)
LANES(erfc8, 0x3d743edd)
LANES(sqrtHalf, 0x3f3504f3)
LANES(geluMost, 0x41600000)

// GELU is max(x, 0) - |x|/2·erfc(|x|/√2), without cancellation on either side.
#define GELU \
	VMOVAPS     Y0, Y7                  \
	VANDNPS     Y0, Y8, Y4              \
	VMINPS      geluMost<>(SB), Y4, Y4  \
	VMULPS      sqrtHalf<>(SB), Y4, Y5  \
	VMOVUPS     erfcP<>(SB), Y6         \
	VFMADD213PS one<>(SB), Y5, Y6       \
	VMOVUPS     one<>(SB), Y1           \
	VDIVPS      Y6, Y1, Y6              \
	VMULPS      Y5, Y5, Y0              \
	VXORPS      Y8, Y0, Y0              \
	VMAXPS      expLeast<>(SB), Y0, Y0  \
	EXP_PARTS                           \
	VFMADD213PS Y1, Y1, Y2              \
	VMOVUPS     erfc8<>(SB), Y3         \
	VFMADD213PS erfc7<>(SB), Y6, Y3     \
	VFMADD213PS erfc6<>(SB), Y6, Y3     \
	VFMADD213PS erfc5<>(SB), Y6, Y3     \
	VFMADD213PS erfc4<>(SB), Y6, Y3     \
	VFMADD213PS erfc3<>(SB), Y6, Y3     \
	VFMADD213PS erfc2<>(SB), Y6, Y3     \
	VFMADD213PS erfc1<>(SB), Y6, Y3     \
	VFMADD213PS erfc0<>(SB), Y6, Y3     \
	VMULPS      Y6, Y3, Y3              \
	VMULPS      Y2, Y3, Y3              \
	VMULPS      half<>(SB), Y4, Y4      \
	VXORPS      Y0, Y0, Y0              \
	VMAXPS      Y7, Y0, Y0              \
	VFNMADD231PS Y4, Y3, Y0

// func geluLanes(n int, dst, src *float32)
TEXT ·geluLanes(SB), NOSPLIT, $0-24
	VMOVUPS signBit<>(SB), Y8
	UNARY(GELU)
