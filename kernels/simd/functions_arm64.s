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
// of itself for a up to 10.
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
GLOBL erfc<>(SB), RODATA|NOPTR, $48

#define NEXT(r) VLD1R.P 4(R10), [r.S4]

#define ERFC_STEP \
	NEXT(V8)       \
	HORNER(V6, V8)

// GELU is max(x, 0) - |x|/2·erfc(|x|/√2), without cancellation on either side.
#define GELU \
	MOVD $erfc<>(SB), R10        \
	VORR V0.B16, V0.B16, V7.B16  \
	FABS(9, 0)                   \
	NEXT(V8)                     \
	FMIN(9, 9, 8)                \
	NEXT(V8)                     \
	FMUL(5, 9, 8)                \
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
	ERFC_STEP                    \
	ERFC_STEP                    \
	ERFC_STEP                    \
	ERFC_STEP                    \
	ERFC_STEP                    \
	ERFC_STEP                    \
	ERFC_STEP                    \
	ERFC_STEP                    \
	FMUL(3, 3, 6)                \
	FMUL(3, 3, 2)                \
	FMUL(9, 9, 27)               \
	VEOR V0.B16, V0.B16, V0.B16  \
	FMAX(0, 0, 7)                \
	VFMLS V9.S4, V3.S4, V0.S4

// func geluLanes(n int, dst, src *float32)
TEXT ·geluLanes(SB), NOSPLIT, $0-24
	PARTS
	UNARY(GELU)
