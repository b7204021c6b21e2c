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

// ERFC makes Y3 = erfc(Y5), Y5 ≥ 0. It clobbers Y0 to Y2 and Y6.
#define ERFC \
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
	VMULPS      Y2, Y3, Y3

// GELU is max(x, 0) - |x|/2·erfc(|x|/√2), without cancellation on either side.
#define GELU \
	VMOVAPS     Y0, Y7                  \
	VANDNPS     Y0, Y8, Y4              \
	VMINPS      geluMost<>(SB), Y4, Y4  \
	VMULPS      sqrtHalf<>(SB), Y4, Y5  \
	ERFC                                \
	VMULPS      half<>(SB), Y4, Y4      \
	VXORPS      Y0, Y0, Y0              \
	VMAXPS      Y7, Y0, Y0              \
	VFNMADD231PS Y4, Y3, Y0

// func geluLanes(n int, dst, src *float32)
TEXT ·geluLanes(SB), NOSPLIT, $0-24
	VMOVUPS signBit<>(SB), Y8
	UNARY(GELU)

// erf(x) = x·(erf0 + x²·(erf1 + …)) up to 1 (Cephes erff); beyond, 1 - erfc has enough
// places.
LANES(erf0, 0x3f906eba)
LANES(erf1, 0xbec0939f)
LANES(erf2, 0x3de7167c)
LANES(erf3, 0xbcdbfc87)
LANES(erf4, 0x3baa02d9)
LANES(erf5, 0xba51fb80)
LANES(erf6, 0x38a4b519)
LANES(four, 0x40800000)

#define ERF \
	VMOVAPS     Y0, Y7                  \
	VANDNPS     Y0, Y8, Y5              \
	VMINPS      four<>(SB), Y5, Y5      \
	ERFC                                \
	VMOVUPS     one<>(SB), Y1           \
	VSUBPS      Y3, Y1, Y3              \
	VANDPS      Y7, Y8, Y4              \
	VORPS       Y4, Y3, Y3              \
	VMULPS      Y7, Y7, Y0              \
	VMOVUPS     erf6<>(SB), Y2          \
	VFMADD213PS erf5<>(SB), Y0, Y2      \
	VFMADD213PS erf4<>(SB), Y0, Y2      \
	VFMADD213PS erf3<>(SB), Y0, Y2      \
	VFMADD213PS erf2<>(SB), Y0, Y2      \
	VFMADD213PS erf1<>(SB), Y0, Y2      \
	VFMADD213PS erf0<>(SB), Y0, Y2      \
	VMULPS      Y7, Y2, Y2              \
	VCMPPS      $13, Y1, Y0, Y4         \
	VBLENDVPS   Y4, Y3, Y2, Y0

// func erfLanes(n int, dst, src *float32)
TEXT ·erfLanes(SB), NOSPLIT, $0-24
	VMOVUPS signBit<>(SB), Y8
	UNARY(ERF)

LANES(exponentStep, 0x00800000)

// EXPM1 makes Y0 = e^Y0 - 1, by halves: 2^n may be more than there is.
#define EXPM1 \
	VMOVUPS     expLeast<>(SB), Y1         \
	VMAXPS      Y0, Y1, Y0                 \
	VMOVUPS     expMost<>(SB), Y1          \
	VMINPS      Y0, Y1, Y0                 \
	EXP_PARTS                              \
	VPSUBD      exponentStep<>(SB), Y1, Y1 \
	VSUBPS      half<>(SB), Y1, Y0         \
	VFMADD213PS Y0, Y1, Y2                 \
	VADDPS      Y2, Y2, Y0

// func expm1Lanes(n int, dst, src *float32)
TEXT ·expm1Lanes(SB), NOSPLIT, $0-24
	UNARY(EXPM1)

#define ELU \
	VMOVAPS   Y0, Y7         \
	VXORPS    Y1, Y1, Y1     \
	VMINPS    Y0, Y1, Y0     \
	VMULPS    Y14, Y0, Y0    \
	EXPM1                    \
	VMULPS    Y13, Y0, Y0    \
	VMULPS    Y15, Y7, Y1    \
	VXORPS    Y2, Y2, Y2     \
	VCMPPS    $1, Y7, Y2, Y2 \
	VBLENDVPS Y2, Y1, Y0, Y0

// func eluLanes(n int, dst, src *float32, negative, inner, positive float32)
TEXT ·eluLanes(SB), NOSPLIT, $0-36
	VBROADCASTSS negative+24(FP), Y13
	VBROADCASTSS inner+28(FP), Y14
	VBROADCASTSS positive+32(FP), Y15
	UNARY(ELU)

// x = 2^e·m with m from √½ to √2; log m = f - f²/2 + f³·(log0 + f·(log1 + …)) for
// f = m - 1 (Cephes logf).
LANES(log0, 0x3eaaaaaa)
LANES(log1, 0xbe7ffffc)
LANES(log2, 0x3e4cceac)
LANES(log3, 0xbe2aae50)
LANES(log4, 0x3e11e9bf)
LANES(log5, 0xbdfe5d4f)
LANES(log6, 0x3def251a)
LANES(log7, 0xbdebd1b8)
LANES(log8, 0x3d9021bb)
LANES(twentyThree, 0x41b80000)
LANES(minusInfinity, 0xff800000)
LANES(exp2Of23, 0x4b000000)

// LOG makes Y0 = Y13·log m + e·Y14 + e·Y15 of Y0. It clobbers Y1 to Y3, and Y7.
#define LOG \
	VMOVAPS      Y0, Y7                     \
	VCMPPS       $1, exponentStep<>(SB), Y0, Y1 \
	VMULPS       exp2Of23<>(SB), Y0, Y2     \
	VBLENDVPS    Y1, Y2, Y0, Y0             \
	VANDPS       twentyThree<>(SB), Y1, Y3  \
	VPSUBD       sqrtHalf<>(SB), Y0, Y1     \
	VPSRAD       $23, Y1, Y1                \
	VPSLLD       $23, Y1, Y2                \
	VPSUBD       Y2, Y0, Y0                 \
	VCVTDQ2PS    Y1, Y1                     \
	VSUBPS       Y3, Y1, Y1                 \
	VSUBPS       one<>(SB), Y0, Y0          \
	VMOVUPS      log8<>(SB), Y2             \
	VFMADD213PS  log7<>(SB), Y0, Y2         \
	VFMADD213PS  log6<>(SB), Y0, Y2         \
	VFMADD213PS  log5<>(SB), Y0, Y2         \
	VFMADD213PS  log4<>(SB), Y0, Y2         \
	VFMADD213PS  log3<>(SB), Y0, Y2         \
	VFMADD213PS  log2<>(SB), Y0, Y2         \
	VFMADD213PS  log1<>(SB), Y0, Y2         \
	VFMADD213PS  log0<>(SB), Y0, Y2         \
	VMULPS       Y0, Y0, Y3                 \
	VMULPS       Y0, Y2, Y2                 \
	VMULPS       Y3, Y2, Y2                 \
	VFNMADD231PS half<>(SB), Y3, Y2         \
	VADDPS       Y2, Y0, Y0                 \
	VMULPS       Y13, Y0, Y0                \
	VFMADD231PS  Y14, Y1, Y0                \
	VFMADD231PS  Y15, Y1, Y0                \
	VXORPS       Y2, Y2, Y2                 \
	VCMPPS       $0, Y2, Y7, Y1             \
	VMOVUPS      minusInfinity<>(SB), Y3    \
	VBLENDVPS    Y1, Y3, Y0, Y0             \
	VCMPPS       $0, infinity<>(SB), Y7, Y1 \
	VBLENDVPS    Y1, Y7, Y0, Y0             \
	VCMPPS       $9, Y2, Y7, Y1             \
	VORPS        Y1, Y0, Y0

// func logLanes(n int, dst, src *float32, scale, low, high float32)
TEXT ·logLanes(SB), NOSPLIT, $0-36
	VBROADCASTSS scale+24(FP), Y13
	VBROADCASTSS low+28(FP), Y14
	VBROADCASTSS high+32(FP), Y15
	UNARY(LOG)

// LOG1P is the logarithm of u = 1+x, and to first order what u has lost.
#define LOG1P \
	VMOVAPS Y0, Y11               \
	VADDPS  one<>(SB), Y0, Y0     \
	VMOVAPS Y0, Y12               \
	LOG                           \
	VSUBPS  one<>(SB), Y12, Y1    \
	VSUBPS  Y1, Y11, Y1           \
	VDIVPS  Y12, Y1, Y1           \
	VCMPPS  $0, Y1, Y1, Y2        \
	VANDPS  Y2, Y1, Y1            \
	VADDPS  Y1, Y0, Y0

// func log1pLanes(n int, dst, src *float32)
TEXT ·log1pLanes(SB), NOSPLIT, $0-24
	VMOVUPS one<>(SB), Y13
	VMOVUPS ln2Lo<>(SB), Y14
	VMOVUPS ln2Hi<>(SB), Y15
	UNARY(LOG1P)

// π in three parts, and the sine from -π/2 to π/2: x + x³·(sin0 + x²·(sin1 + …)).
LANES(inversePi, 0x3ea2f983)
LANES(pi0, 0x40490fdb)
LANES(pi1, 0xb3bbbd2e)
LANES(pi2, 0xa7772ced)
LANES(sin0, 0xbe2aaaa6)
LANES(sin1, 0x3c088777)
LANES(sin2, 0xb94fbaeb)
LANES(sin3, 0x362f0a87)
LANES(sineMost, 0x48000000)

// SINE makes Y0 = sin(Y0 + Y15·π), and marks in Y14 where Y0 is too large or no number.
#define SINE \
	VANDNPS      Y0, Y8, Y1                  \
	VCMPPS       $6, sineMost<>(SB), Y1, Y1  \
	VORPS        Y1, Y14, Y14                \
	VMULPS       inversePi<>(SB), Y0, Y1     \
	VADDPS       Y15, Y1, Y1                 \
	VROUNDPS     $0, Y1, Y1                  \
	VCVTPS2DQ    Y1, Y2                      \
	VPSLLD       $31, Y2, Y2                 \
	VSUBPS       Y15, Y1, Y1                 \
	VFNMADD231PS pi0<>(SB), Y1, Y0           \
	VFNMADD231PS pi1<>(SB), Y1, Y0           \
	VFNMADD231PS pi2<>(SB), Y1, Y0           \
	VMULPS       Y0, Y0, Y3                  \
	VMOVUPS      sin3<>(SB), Y4              \
	VFMADD213PS  sin2<>(SB), Y3, Y4          \
	VFMADD213PS  sin1<>(SB), Y3, Y4          \
	VFMADD213PS  sin0<>(SB), Y3, Y4          \
	VMULPS       Y0, Y3, Y3                  \
	VFMADD231PS  Y3, Y4, Y0                  \
	VXORPS       Y2, Y0, Y0

// func sineLanes(n int, dst, src *float32, shift float32) (beyond int32)
TEXT ·sineLanes(SB), NOSPLIT, $0-36
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	MOVQ         src+16(FP), SI
	VBROADCASTSS shift+24(FP), Y15
	VMOVUPS      signBit<>(SB), Y8
	VXORPS       Y14, Y14, Y14
	XORQ         AX, AX

loop:
	VMOVUPS (SI)(AX*1), Y0
	SINE
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ    $32, AX
	DECQ    CX
	JNZ     loop
	VMOVMSKPS Y14, AX
	MOVL    AX, beyond+32(FP)
	VZEROUPPER
	RET
