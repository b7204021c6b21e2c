//go:build !purego

#include "textflag.h"
#include "loops_arm64.h"

// Functions of each element for NEON, four at a time.

DATA parts<>+0(SB)/4, $0x3fb8aa3b // V14: log2e
DATA parts<>+4(SB)/4, $0x3f318000 // V15: ln2Hi
DATA parts<>+8(SB)/4, $0xb95e8083 // V16: ln2Lo
DATA parts<>+12(SB)/4, $0x39506967 // V17: expP0
DATA parts<>+16(SB)/4, $0x3ab743ce // V18: expP1
DATA parts<>+20(SB)/4, $0x3c088908 // V19: expP2
DATA parts<>+24(SB)/4, $0x3d2aa9c1 // V20: expP3
DATA parts<>+28(SB)/4, $0x3e2aaaaa // V21: expP4
DATA parts<>+32(SB)/4, $0x3f000000 // V22: expP5
DATA parts<>+36(SB)/4, $0x3f800000 // V23: one
DATA parts<>+40(SB)/4, $0x7f // V24: bias
DATA parts<>+44(SB)/4, $0xc2ae999a // V25: least exponent
DATA parts<>+48(SB)/4, $0x42b20000 // V26: most exponent
DATA parts<>+52(SB)/4, $0x3f000000 // V27: half
DATA parts<>+56(SB)/4, $0x40000000 // V28: two
DATA parts<>+60(SB)/4, $0x41a00000 // V29: tanhMost
DATA parts<>+64(SB)/4, $0x3fcc422a // V30: geluSlope
DATA parts<>+68(SB)/4, $0x3d922279 // V31: geluCubic
GLOBL parts<>(SB), RODATA|NOPTR, $72

// PARTS loads them, each in four lanes, into V14 to V31.
#define PARTS \
	MOVD $parts<>(SB), R9 \
	VLD1R.P 4(R9), [V14.S4] \
	VLD1R.P 4(R9), [V15.S4] \
	VLD1R.P 4(R9), [V16.S4] \
	VLD1R.P 4(R9), [V17.S4] \
	VLD1R.P 4(R9), [V18.S4] \
	VLD1R.P 4(R9), [V19.S4] \
	VLD1R.P 4(R9), [V20.S4] \
	VLD1R.P 4(R9), [V21.S4] \
	VLD1R.P 4(R9), [V22.S4] \
	VLD1R.P 4(R9), [V23.S4] \
	VLD1R.P 4(R9), [V24.S4] \
	VLD1R.P 4(R9), [V25.S4] \
	VLD1R.P 4(R9), [V26.S4] \
	VLD1R.P 4(R9), [V27.S4] \
	VLD1R.P 4(R9), [V28.S4] \
	VLD1R.P 4(R9), [V29.S4] \
	VLD1R.P 4(R9), [V30.S4] \
	VLD1R.P 4(R9), [V31.S4]

// HORNER is p·x + c for p in V3: into V3, by V4.
#define HORNER(x, c) \
	VORR  c.B16, c.B16, V4.B16 \
	VFMLA V3.S4, x.S4, V4.S4   \
	VORR  V4.B16, V4.B16, V3.B16

// EXP_PARTS makes V1 = 2^n and V2 = e^r - 1 of V0 = n·ln 2 + r, from the least to the
// most exponent. e^x - 1 is V1·V2 + (V1-1) without cancellation. It clobbers V3, V4.
#define EXP_PARTS \
	FMUL(1, 0, 14)               \
	FRINTN(1, 1)                 \
	VFMLS V1.S4, V15.S4, V0.S4   \
	VFMLS V1.S4, V16.S4, V0.S4   \
	VORR  V17.B16, V17.B16, V3.B16 \
	HORNER(V0, V18)              \
	HORNER(V0, V19)              \
	HORNER(V0, V20)              \
	HORNER(V0, V21)              \
	HORNER(V0, V22)              \
	FMUL(4, 0, 0)                \
	VORR  V0.B16, V0.B16, V2.B16 \
	VFMLA V4.S4, V3.S4, V2.S4    \
	FCVTNS(1, 1)                 \
	VADD  V24.S4, V1.S4, V1.S4   \
	VSHL  $23, V1.S4, V1.S4

#define SIGMOID \
	FNEG(0, 0)     \
	FMAX(0, 0, 25) \
	FMIN(0, 0, 26) \
	EXP_PARTS      \
	FADD(2, 2, 23) \
	FMUL(2, 2, 1)  \
	FADD(2, 2, 23) \
	FDIV(0, 23, 2)

// func sigmoidLanes(n int, dst, src *float32)
TEXT ·sigmoidLanes(SB), NOSPLIT, $0-24
	PARTS
	UNARY(SIGMOID)

// TANH_OF_HALF makes V0 = tanh(V0/2) = m / (m+2), where m = e^V0 - 1.
#define TANH_OF_HALF \
	FNEG(1, 29)    \
	FMAX(0, 0, 1)  \
	FMIN(0, 0, 29) \
	EXP_PARTS      \
	FSUB(0, 1, 23) \
	VFMLA V1.S4, V2.S4, V0.S4 \
	FADD(1, 0, 28) \
	FDIV(0, 0, 1)

#define TANH \
	FADD(0, 0, 0) \
	TANH_OF_HALF

// func tanhLanes(n int, dst, src *float32)
TEXT ·tanhLanes(SB), NOSPLIT, $0-24
	PARTS
	UNARY(TANH)

#define GELU_TANH \
	VORR  V0.B16, V0.B16, V7.B16   \
	FMUL(1, 0, 0)                  \
	VORR  V30.B16, V30.B16, V2.B16 \
	VFMLA V1.S4, V31.S4, V2.S4     \
	FMUL(0, 0, 2)                  \
	TANH_OF_HALF                   \
	FADD(0, 0, 23)                 \
	FMUL(7, 7, 27)                 \
	FMUL(0, 0, 7)

// func geluTanhLanes(n int, dst, src *float32)
TEXT ·geluTanhLanes(SB), NOSPLIT, $0-24
	PARTS
	UNARY(GELU_TANH)

// erfc(a) = e^(-a²) · t·(erfc0 + t·(erfc1 + …)), t = 1 / (1 + p·a), to within 3·10⁻⁸
// of itself for a up to 10. erf(x) = x·(erf0 + x²·(erf1 + …)) up to 1 (Cephes erff).
DATA erfc<>+0(SB)/4, $0x41600000 // 14, the largest |x| looked at
DATA erfc<>+4(SB)/4, $0x3f3504f3 // √½
DATA erfc<>+8(SB)/4, $0x3ec28f5c // p
DATA erfc<>+12(SB)/4, $0x3d743edd // erfc8
DATA erfc<>+16(SB)/4, $0xbe87fbb7 // erfc7
DATA erfc<>+20(SB)/4, $0x3ebde3a4 // erfc6
DATA erfc<>+24(SB)/4, $0xbe2dbf47 // erfc5
DATA erfc<>+28(SB)/4, $0x3e717ae6 // erfc4
DATA erfc<>+32(SB)/4, $0x3e0b67a1 // erfc3
DATA erfc<>+36(SB)/4, $0x3e5177b1 // erfc2
DATA erfc<>+40(SB)/4, $0x3e5af585 // erfc1
DATA erfc<>+44(SB)/4, $0x3e5b8ff8 // erfc0
DATA erfc<>+48(SB)/4, $0x38a4b519 // erf6
DATA erfc<>+52(SB)/4, $0xba51fb80 // erf5
DATA erfc<>+56(SB)/4, $0x3baa02d9 // erf4
DATA erfc<>+60(SB)/4, $0xbcdbfc87 // erf3
DATA erfc<>+64(SB)/4, $0x3de7167c // erf2
DATA erfc<>+68(SB)/4, $0xbec0939f // erf1
DATA erfc<>+72(SB)/4, $0x3f906eba // erf0
GLOBL erfc<>(SB), RODATA|NOPTR, $76

#define NEXT(r) VLD1R.P 4(R10), [r.S4]

// STEP is HORNER with the next number of the table.
#define STEP(x) \
	NEXT(V8)      \
	HORNER(x, V8)

// ERFC makes V3 = erfc(V5), V5 ≥ 0, with R10 at p. It clobbers V0 to V2, V4, V6, V8.
#define ERFC \
	NEXT(V8)                     \
	VORR V23.B16, V23.B16, V6.B16 \
	VFMLA V5.S4, V8.S4, V6.S4    \
	FDIV(6, 23, 6)               \
	FMUL(0, 5, 5)                \
	FNEG(0, 0)                   \
	FMAX(0, 0, 25)               \
	EXP_PARTS                    \
	FADD(2, 2, 23)               \
	FMUL(2, 2, 1)                \
	NEXT(V3)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	STEP(V6)                     \
	FMUL(3, 3, 6)                \
	FMUL(3, 3, 2)

// GELU is max(x, 0) - |x|/2·erfc(|x|/√2), without cancellation on either side.
#define GELU \
	MOVD $erfc<>(SB), R10        \
	VORR V0.B16, V0.B16, V7.B16  \
	FABS(9, 0)                   \
	NEXT(V8)                     \
	FMIN(9, 9, 8)                \
	NEXT(V8)                     \
	FMUL(5, 9, 8)                \
	ERFC                         \
	FMUL(9, 9, 27)               \
	VEOR V0.B16, V0.B16, V0.B16  \
	FMAX(0, 0, 7)                \
	VFMLS V9.S4, V3.S4, V0.S4

// func geluLanes(n int, dst, src *float32)
TEXT ·geluLanes(SB), NOSPLIT, $0-24
	PARTS
	UNARY(GELU)

// CONSTANT makes all lanes of a register the number.
#define CONSTANT(value, v) \
	MOVD $value, R4 \
	VDUP R4, v.S4

// ERF is 1 - erfc from 1 on.
#define ERF \
	MOVD $erfc<>+8(SB), R10      \
	VORR V0.B16, V0.B16, V7.B16  \
	FABS(5, 0)                   \
	FMIN(5, 5, 12)               \
	ERFC                         \
	FSUB(9, 23, 3)               \
	BIT(9, 7, 11)                \
	FMUL(0, 7, 7)                \
	NEXT(V3)                     \
	STEP(V0)                     \
	STEP(V0)                     \
	STEP(V0)                     \
	STEP(V0)                     \
	STEP(V0)                     \
	STEP(V0)                     \
	FMUL(3, 3, 7)                \
	FCMGE(4, 0, 23)              \
	VORR V3.B16, V3.B16, V0.B16  \
	BIT(0, 9, 4)

// func erfLanes(n int, dst, src *float32)
TEXT ·erfLanes(SB), NOSPLIT, $0-24
	PARTS
	CONSTANT(0x80000000, V11)
	CONSTANT(0x40800000, V12)
	UNARY(ERF)

// EXPM1 makes V0 = e^V0 - 1, by halves: 2^n may be more than there is. V12 is the step
// of an exponent.
#define EXPM1 \
	FMAX(0, 0, 25)            \
	FMIN(0, 0, 26)            \
	EXP_PARTS                 \
	VSUB  V12.S4, V1.S4, V1.S4 \
	FSUB(0, 1, 27)            \
	VFMLA V1.S4, V2.S4, V0.S4 \
	FADD(0, 0, 0)

// func expm1Lanes(n int, dst, src *float32)
TEXT ·expm1Lanes(SB), NOSPLIT, $0-24
	PARTS
	CONSTANT(0x00800000, V12)
	UNARY(EXPM1)

#define ELU \
	VORR V0.B16, V0.B16, V7.B16 \
	VEOR V1.B16, V1.B16, V1.B16 \
	FMIN(0, 0, 1)               \
	FMUL(0, 0, 10)              \
	EXPM1                       \
	FMUL(0, 0, 9)               \
	FMUL(1, 7, 11)              \
	FCMGT0(2, 7)                \
	BIT(0, 1, 2)

// func eluLanes(n int, dst, src *float32, negative, inner, positive float32)
TEXT ·eluLanes(SB), NOSPLIT, $0-36
	PARTS
	CONSTANT(0x00800000, V12)
	FMOVS negative+24(FP), F9
	VDUP  V9.S[0], V9.S4
	FMOVS inner+28(FP), F10
	VDUP  V10.S[0], V10.S4
	FMOVS positive+32(FP), F11
	VDUP  V11.S[0], V11.S4
	UNARY(ELU)

// x = 2^e·m with m from √½ to √2; log m = f - f²/2 + f³·(log0 + f·(log1 + …)) for
// f = m - 1 (Cephes logf).
DATA logs<>+0(SB)/4, $0x00800000 // V13: least normal number
DATA logs<>+4(SB)/4, $0x4b000000 // V14: 2^23
DATA logs<>+8(SB)/4, $0x41b80000 // V15: 23
DATA logs<>+12(SB)/4, $0x3f3504f3 // V16: √½
DATA logs<>+16(SB)/4, $0x3f800000 // V17: one
DATA logs<>+20(SB)/4, $0x3f000000 // V18: half
DATA logs<>+24(SB)/4, $0xff800000 // V19: -Inf
DATA logs<>+28(SB)/4, $0x7f800000 // V20: Inf
DATA logs<>+32(SB)/4, $0x3d9021bb // V21: log8
DATA logs<>+36(SB)/4, $0xbdebd1b8 // V22: log7
DATA logs<>+40(SB)/4, $0x3def251a // V23: log6
DATA logs<>+44(SB)/4, $0xbdfe5d4f // V24: log5
DATA logs<>+48(SB)/4, $0x3e11e9bf // V25: log4
DATA logs<>+52(SB)/4, $0xbe2aae50 // V26: log3
DATA logs<>+56(SB)/4, $0x3e4cceac // V27: log2
DATA logs<>+60(SB)/4, $0xbe7ffffc // V28: log1
DATA logs<>+64(SB)/4, $0x3eaaaaaa // V29: log0
GLOBL logs<>(SB), RODATA|NOPTR, $68

// LOGS loads them.
#define LOGS \
	MOVD $logs<>(SB), R9 \
	VLD1R.P 4(R9), [V13.S4] \
	VLD1R.P 4(R9), [V14.S4] \
	VLD1R.P 4(R9), [V15.S4] \
	VLD1R.P 4(R9), [V16.S4] \
	VLD1R.P 4(R9), [V17.S4] \
	VLD1R.P 4(R9), [V18.S4] \
	VLD1R.P 4(R9), [V19.S4] \
	VLD1R.P 4(R9), [V20.S4] \
	VLD1R.P 4(R9), [V21.S4] \
	VLD1R.P 4(R9), [V22.S4] \
	VLD1R.P 4(R9), [V23.S4] \
	VLD1R.P 4(R9), [V24.S4] \
	VLD1R.P 4(R9), [V25.S4] \
	VLD1R.P 4(R9), [V26.S4] \
	VLD1R.P 4(R9), [V27.S4] \
	VLD1R.P 4(R9), [V28.S4] \
	VLD1R.P 4(R9), [V29.S4]

// LOG makes V0 = V9·log m + e·V10 + e·V11 of V0. It clobbers V1 to V5, and V7.
#define LOG \
	VORR  V0.B16, V0.B16, V7.B16   \
	FCMGT(1, 13, 0)                \
	FMUL(2, 0, 14)                 \
	BIT(0, 2, 1)                   \
	VAND  V15.B16, V1.B16, V5.B16  \
	VSUB  V16.S4, V0.S4, V1.S4     \
	SSHR23(1, 1)                   \
	VSHL  $23, V1.S4, V2.S4        \
	VSUB  V2.S4, V0.S4, V0.S4      \
	SCVTF(1, 1)                    \
	FSUB(1, 1, 5)                  \
	FSUB(0, 0, 17)                 \
	VORR  V21.B16, V21.B16, V3.B16 \
	HORNER(V0, V22)                \
	HORNER(V0, V23)                \
	HORNER(V0, V24)                \
	HORNER(V0, V25)                \
	HORNER(V0, V26)                \
	HORNER(V0, V27)                \
	HORNER(V0, V28)                \
	HORNER(V0, V29)                \
	FMUL(5, 0, 0)                  \
	FMUL(3, 3, 0)                  \
	FMUL(3, 3, 5)                  \
	VFMLS V5.S4, V18.S4, V3.S4     \
	FADD(0, 0, 3)                  \
	FMUL(0, 0, 9)                  \
	VFMLA V1.S4, V10.S4, V0.S4     \
	VFMLA V1.S4, V11.S4, V0.S4     \
	FCMEQ0(1, 7)                   \
	BIT(0, 19, 1)                  \
	FCMEQ(1, 7, 20)                \
	BIT(0, 7, 1)                   \
	FCMGE0(1, 7)                   \
	NOT(1, 1)                      \
	VORR  V1.B16, V0.B16, V0.B16

// func logLanes(n int, dst, src *float32, scale, low, high float32)
TEXT ·logLanes(SB), NOSPLIT, $0-36
	LOGS
	FMOVS scale+24(FP), F9
	VDUP  V9.S[0], V9.S4
	FMOVS low+28(FP), F10
	VDUP  V10.S[0], V10.S4
	FMOVS high+32(FP), F11
	VDUP  V11.S[0], V11.S4
	UNARY(LOG)

// LOG1P is the logarithm of u = 1+x, and to first order what u has lost.
#define LOG1P \
	VORR V0.B16, V0.B16, V12.B16 \
	FADD(0, 0, 17)               \
	VORR V0.B16, V0.B16, V6.B16  \
	LOG                          \
	FSUB(1, 6, 17)               \
	FSUB(1, 12, 1)               \
	FDIV(1, 1, 6)                \
	FCMEQ(2, 1, 1)               \
	VAND V2.B16, V1.B16, V1.B16  \
	FADD(0, 0, 1)

// func log1pLanes(n int, dst, src *float32)
TEXT ·log1pLanes(SB), NOSPLIT, $0-24
	LOGS
	CONSTANT(0x3f800000, V9)
	CONSTANT(0xb95e8083, V10)
	CONSTANT(0x3f318000, V11)
	UNARY(LOG1P)

// π in three parts, and the sine from -π/2 to π/2: x + x³·(sin0 + x²·(sin1 + …)).
DATA sines<>+0(SB)/4, $0x3ea2f983 // V16: 1/π
DATA sines<>+4(SB)/4, $0x40490fdb // V17: pi0
DATA sines<>+8(SB)/4, $0xb3bbbd2e // V18: pi1
DATA sines<>+12(SB)/4, $0xa7772ced // V19: pi2
DATA sines<>+16(SB)/4, $0x362f0a87 // V20: sin3
DATA sines<>+20(SB)/4, $0xb94fbaeb // V21: sin2
DATA sines<>+24(SB)/4, $0x3c088777 // V22: sin1
DATA sines<>+28(SB)/4, $0xbe2aaaa6 // V23: sin0
DATA sines<>+32(SB)/4, $0x48000000 // V24: sineMost
GLOBL sines<>(SB), RODATA|NOPTR, $36

// SINE makes V0 = sin(V0 + V25·π), and marks in V26 where V0 is too large or no number.
#define SINE \
	FABS(1, 0)                     \
	FCMGE(1, 24, 1)                \
	NOT(1, 1)                      \
	VORR  V1.B16, V26.B16, V26.B16 \
	FMUL(1, 0, 16)                 \
	FADD(1, 1, 25)                 \
	FRINTN(1, 1)                   \
	FCVTNS(2, 1)                   \
	VSHL  $31, V2.S4, V2.S4        \
	FSUB(1, 1, 25)                 \
	VFMLS V1.S4, V17.S4, V0.S4     \
	VFMLS V1.S4, V18.S4, V0.S4     \
	VFMLS V1.S4, V19.S4, V0.S4     \
	FMUL(5, 0, 0)                  \
	VORR  V20.B16, V20.B16, V3.B16 \
	HORNER(V5, V21)                \
	HORNER(V5, V22)                \
	HORNER(V5, V23)                \
	FMUL(5, 5, 0)                  \
	VFMLA V5.S4, V3.S4, V0.S4      \
	VEOR  V2.B16, V0.B16, V0.B16

// func sineLanes(n int, dst, src *float32, shift float32) (beyond int32)
TEXT ·sineLanes(SB), NOSPLIT, $0-36
	MOVD    n+0(FP), R0
	MOVD    dst+8(FP), R1
	MOVD    src+16(FP), R2
	MOVD    $sines<>(SB), R9
	VLD1R.P 4(R9), [V16.S4]
	VLD1R.P 4(R9), [V17.S4]
	VLD1R.P 4(R9), [V18.S4]
	VLD1R.P 4(R9), [V19.S4]
	VLD1R.P 4(R9), [V20.S4]
	VLD1R.P 4(R9), [V21.S4]
	VLD1R.P 4(R9), [V22.S4]
	VLD1R.P 4(R9), [V23.S4]
	VLD1R.P 4(R9), [V24.S4]
	FMOVS   shift+24(FP), F25
	VDUP    V25.S[0], V25.S4
	VEOR    V26.B16, V26.B16, V26.B16

loop:
	VLD1.P 16(R2), [V0.S4]
	SINE
	VST1.P [V0.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	VMOV   V26.D[0], R3
	VMOV   V26.D[1], R4
	ORR    R4, R3
	LSR    $32, R3, R4
	ORR    R4, R3
	MOVW   R3, beyond+32(FP)
	RET
