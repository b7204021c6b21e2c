//go:build !purego

#include "textflag.h"

// Row kernels for NEON, four lanes at a time. The assembler knows VFMLA and VFMLS
// only; the other floating point instructions are written as words:
// OP Vd.4S, Vn.4S, Vm.4S with the numbers of the registers.

#define FADD(d, n, m) WORD $(0x4E20D400 | m<<16 | n<<5 | d)
#define FSUB(d, n, m) WORD $(0x4EA0D400 | m<<16 | n<<5 | d)
#define FMUL(d, n, m) WORD $(0x6E20DC00 | m<<16 | n<<5 | d)
#define FMAX(d, n, m) WORD $(0x4E20F400 | m<<16 | n<<5 | d)
#define FMIN(d, n, m) WORD $(0x4EA0F400 | m<<16 | n<<5 | d)
#define FADDP(d, n, m) WORD $(0x6E20D400 | m<<16 | n<<5 | d)
#define FMAXP(d, n, m) WORD $(0x6E20F400 | m<<16 | n<<5 | d)
#define FMINP(d, n, m) WORD $(0x6EA0F400 | m<<16 | n<<5 | d)
#define FCMGT(d, n, m) WORD $(0x6EA0E400 | m<<16 | n<<5 | d)
#define FCMGE(d, n, m) WORD $(0x6E20E400 | m<<16 | n<<5 | d)
#define BIC(d, n, m) WORD $(0x4E601C00 | m<<16 | n<<5 | d)
#define BIF(d, n, m) WORD $(0x6EE01C00 | m<<16 | n<<5 | d)
#define FRINTN(d, n) WORD $(0x4E218800 | n<<5 | d)
#define FCVTNS(d, n) WORD $(0x4E21A800 | n<<5 | d)
#define SSHR1(d, n) WORD $(0x4F3F0400 | n<<5 | d)

// func tapsWide(n int, y, x *float32, off *int, w *float32, t int)
TEXT ·tapsWide(SB), NOSPLIT, $0-48
	MOVD n+0(FP), R0
	MOVD y+8(FP), R1
	MOVD x+16(FP), R2
	MOVD off+24(FP), R3
	MOVD w+32(FP), R4
	MOVD t+40(FP), R5

block:
	VLD1 (R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	MOVD R3, R6
	MOVD R4, R7
	MOVD R5, R8

tap:
	MOVD.P  8(R6), R9
	VLD1R.P 4(R7), [V4.S4]
	ADD     R9<<2, R2, R9
	VLD1    (R9), [V16.S4, V17.S4, V18.S4, V19.S4]
	VFMLA   V16.S4, V4.S4, V0.S4
	VFMLA   V17.S4, V4.S4, V1.S4
	VFMLA   V18.S4, V4.S4, V2.S4
	VFMLA   V19.S4, V4.S4, V3.S4
	SUBS    $1, R8
	BNE     tap

	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R1)
	ADD    $64, R2
	SUBS   $1, R0
	BNE    block
	RET

// func tapsLanes(n int, y, x *float32, off *int, w *float32, t int)
TEXT ·tapsLanes(SB), NOSPLIT, $0-48
	MOVD n+0(FP), R0
	MOVD y+8(FP), R1
	MOVD x+16(FP), R2
	MOVD off+24(FP), R3
	MOVD w+32(FP), R4
	MOVD t+40(FP), R5

block:
	VLD1 (R1), [V0.S4]
	MOVD R3, R6
	MOVD R4, R7
	MOVD R5, R8

tap:
	MOVD.P  8(R6), R9
	VLD1R.P 4(R7), [V4.S4]
	ADD     R9<<2, R2, R9
	VLD1    (R9), [V16.S4]
	VFMLA   V16.S4, V4.S4, V0.S4
	SUBS    $1, R8
	BNE     tap

	VST1.P [V0.S4], 16(R1)
	ADD    $16, R2
	SUBS   $1, R0
	BNE    block
	RET

// func fillLanes(n int, dst *float32, v float32)
TEXT ·fillLanes(SB), NOSPLIT, $0-20
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVW v+16(FP), R2
	VDUP R2, V0.S4

block:
	VST1.P [V0.S4], 16(R1)
	SUBS   $1, R0
	BNE    block
	RET

// FOLD adds V0 to V3, then their lanes, into V0.
#define FOLD \
	FADD(0, 0, 1)  \
	FADD(2, 2, 3)  \
	FADD(0, 0, 2)  \
	FADDP(0, 0, 0) \
	FADDP(0, 0, 0)

#define ZERO \
	VEOR V0.B16, V0.B16, V0.B16 \
	VEOR V1.B16, V1.B16, V1.B16 \
	VEOR V2.B16, V2.B16, V2.B16 \
	VEOR V3.B16, V3.B16, V3.B16

// func dotLanes(n int, x, y *float32) float32
TEXT ·dotLanes(SB), NOSPLIT, $0-28
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	MOVD y+16(FP), R2
	ZERO

four:
	SUBS   $4, R0
	BLT    rest
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R2), [V20.S4, V21.S4, V22.S4, V23.S4]
	VFMLA  V16.S4, V20.S4, V0.S4
	VFMLA  V17.S4, V21.S4, V1.S4
	VFMLA  V18.S4, V22.S4, V2.S4
	VFMLA  V19.S4, V23.S4, V3.S4
	B      four

rest:
	ADDS $4, R0
	BEQ  done

one:
	VLD1.P 16(R1), [V16.S4]
	VLD1.P 16(R2), [V20.S4]
	VFMLA  V16.S4, V20.S4, V0.S4
	SUBS   $1, R0
	BNE    one

done:
	FOLD
	FMOVS F0, ret+24(FP)
	RET

// func sumLanes(n int, x *float32) float32
TEXT ·sumLanes(SB), NOSPLIT, $0-20
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	ZERO

four:
	SUBS   $4, R0
	BLT    rest
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	FADD(0, 0, 16)
	FADD(1, 1, 17)
	FADD(2, 2, 18)
	FADD(3, 3, 19)
	B      four

rest:
	ADDS $4, R0
	BEQ  done

one:
	VLD1.P 16(R1), [V16.S4]
	FADD(0, 0, 16)
	SUBS   $1, R0
	BNE    one

done:
	FOLD
	FMOVS F0, ret+16(FP)
	RET

// func squaresLanes(n int, x *float32, mean float32) float32
TEXT ·squaresLanes(SB), NOSPLIT, $0-28
	MOVD  n+0(FP), R0
	MOVD  x+8(FP), R1
	FMOVS mean+16(FP), F8
	VDUP  V8.S[0], V8.S4
	ZERO

four:
	SUBS   $4, R0
	BLT    rest
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	FSUB(16, 16, 8)
	FSUB(17, 17, 8)
	FSUB(18, 18, 8)
	FSUB(19, 19, 8)
	VFMLA  V16.S4, V16.S4, V0.S4
	VFMLA  V17.S4, V17.S4, V1.S4
	VFMLA  V18.S4, V18.S4, V2.S4
	VFMLA  V19.S4, V19.S4, V3.S4
	B      four

rest:
	ADDS $4, R0
	BEQ  done

one:
	VLD1.P 16(R1), [V16.S4]
	FSUB(16, 16, 8)
	VFMLA  V16.S4, V16.S4, V0.S4
	SUBS   $1, R0
	BNE    one

done:
	FOLD
	FMOVS F0, ret+24(FP)
	RET

// func centerLanes(n int, dst, src *float32, mean, scale float32, weight, bias *float32)
TEXT ·centerLanes(SB), NOSPLIT, $0-48
	MOVD  n+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	FMOVS mean+24(FP), F8
	VDUP  V8.S[0], V8.S4
	FMOVS scale+28(FP), F9
	VDUP  V9.S[0], V9.S4
	MOVD  weight+32(FP), R3
	MOVD  bias+40(FP), R4

loop:
	VLD1.P 16(R2), [V0.S4]
	VLD1.P 16(R3), [V1.S4]
	VLD1.P 16(R4), [V2.S4]
	FSUB(0, 0, 8)
	FMUL(0, 0, 9)
	VFMLA  V0.S4, V1.S4, V2.S4
	VST1.P [V2.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func everySecond(n int, dst, src *float32)
TEXT ·everySecond(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2

loop:
	VLD2.P 32(R2), [V0.S4, V1.S4]
	VST1.P [V0.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func scaleShiftLanes(n int, dst, src *float32, scale, shift float32)
TEXT ·scaleShiftLanes(SB), NOSPLIT, $0-32
	MOVD  n+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	FMOVS scale+24(FP), F8
	VDUP  V8.S[0], V8.S4
	FMOVS shift+28(FP), F9
	VDUP  V9.S[0], V9.S4

loop:
	VLD1.P 16(R2), [V0.S4]
	VORR   V9.B16, V9.B16, V1.B16
	VFMLA  V0.S4, V8.S4, V1.S4
	VST1.P [V1.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func maxLanes(n int, x *float32) float32
//
// FMAX hands a NaN on, as FMIN does.
TEXT ·maxLanes(SB), NOSPLIT, $0-20
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	VLD1 (R1), [V0.S4]

loop:
	VLD1.P 16(R1), [V1.S4]
	FMAX(0, 0, 1)
	SUBS   $1, R0
	BNE    loop
	FMAXP(0, 0, 0)
	FMAXP(0, 0, 0)
	FMOVS  F0, ret+16(FP)
	RET

// func minLanes(n int, x *float32) float32
TEXT ·minLanes(SB), NOSPLIT, $0-20
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	VLD1 (R1), [V0.S4]

loop:
	VLD1.P 16(R1), [V1.S4]
	FMIN(0, 0, 1)
	SUBS   $1, R0
	BNE    loop
	FMINP(0, 0, 0)
	FMINP(0, 0, 0)
	FMOVS  F0, ret+16(FP)
	RET

DATA consts<>+0(SB)/4, $0x42b17218  // expMax
DATA consts<>+4(SB)/4, $0xc2cff1b5  // expMin
DATA consts<>+8(SB)/4, $0x3fb8aa3b  // log2e
DATA consts<>+12(SB)/4, $0x3f318000 // ln2Hi
DATA consts<>+16(SB)/4, $0xb95e8083 // ln2Lo
DATA consts<>+20(SB)/4, $0x39506967 // expP0
DATA consts<>+24(SB)/4, $0x3ab743ce
DATA consts<>+28(SB)/4, $0x3c088908
DATA consts<>+32(SB)/4, $0x3d2aa9c1
DATA consts<>+36(SB)/4, $0x3e2aaaaa
DATA consts<>+40(SB)/4, $0x3f000000
DATA consts<>+44(SB)/4, $0x3f800000 // one
DATA consts<>+48(SB)/4, $0x7f       // bias of the exponent
DATA consts<>+52(SB)/4, $0x7f800000 // infinity
GLOBL consts<>(SB), RODATA|NOPTR, $56

DATA expNormal<>+0(SB)/4, $0xc2aeac4f
GLOBL expNormal<>(SB), RODATA|NOPTR, $4

// CONSTS loads them, each in four lanes, into V16 to V29.
#define CONSTS \
	MOVD    $consts<>(SB), R9  \
	VLD1R.P 4(R9), [V16.S4]    \
	VLD1R.P 4(R9), [V17.S4]    \
	VLD1R.P 4(R9), [V18.S4]    \
	VLD1R.P 4(R9), [V19.S4]    \
	VLD1R.P 4(R9), [V20.S4]    \
	VLD1R.P 4(R9), [V21.S4]    \
	VLD1R.P 4(R9), [V22.S4]    \
	VLD1R.P 4(R9), [V23.S4]    \
	VLD1R.P 4(R9), [V24.S4]    \
	VLD1R.P 4(R9), [V25.S4]    \
	VLD1R.P 4(R9), [V26.S4]    \
	VLD1R.P 4(R9), [V27.S4]    \
	VLD1R.P 4(R9), [V28.S4]    \
	VLD1R.P 4(R9), [V29.S4]

// HORNER is p·r + c for p in V3, r in V0: into V3, by V4.
#define HORNER(c) \
	VORR  c.B16, c.B16, V4.B16 \
	VFMLA V3.S4, V0.S4, V4.S4  \
	VORR  V4.B16, V4.B16, V3.B16

// EXP makes V0 = e^V0. It clobbers V1 to V6.
#define EXP \
	VORR  V0.B16, V0.B16, V6.B16 \
	FMUL(1, 0, 18)               \
	FRINTN(1, 1)                 \
	VFMLS V1.S4, V19.S4, V0.S4   \
	VFMLS V1.S4, V20.S4, V0.S4   \
	VORR  V21.B16, V21.B16, V3.B16 \
	HORNER(V22)                  \
	HORNER(V23)                  \
	HORNER(V24)                  \
	HORNER(V25)                  \
	HORNER(V26)                  \
	FMUL(4, 0, 0)                \
	FADD(0, 0, 27)               \
	VFMLA V4.S4, V3.S4, V0.S4    \
	FCVTNS(2, 1)                 \
	SSHR1(3, 2)                  \
	VSUB  V3.S4, V2.S4, V2.S4    \
	VADD  V28.S4, V2.S4, V2.S4   \
	VADD  V28.S4, V3.S4, V3.S4   \
	VSHL  $23, V2.S4, V2.S4      \
	VSHL  $23, V3.S4, V3.S4      \
	FMUL(0, 0, 3)                \
	FMUL(0, 0, 2)                \
	FCMGT(2, 17, 6)              \
	BIC(0, 0, 2)                 \
	FCMGE(2, 16, 6)              \
	FMUL(3, 6, 29)               \
	BIF(0, 3, 2)

// func expLanes(n int, dst, src *float32)
TEXT ·expLanes(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	CONSTS

loop:
	VLD1.P 16(R2), [V0.S4]
	EXP
	VST1.P [V0.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func expSumLanes(n int, dst, src *float32, shift float32) float32
TEXT ·expSumLanes(SB), NOSPLIT, $0-36
	MOVD  n+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	FMOVS shift+24(FP), F30
	VDUP  V30.S[0], V30.S4
	VEOR  V31.B16, V31.B16, V31.B16
	CONSTS
	MOVD  $expNormal<>(SB), R9
	VLD1R (R9), [V17.S4]

loop:
	VLD1.P 16(R2), [V0.S4]
	FSUB(0, 0, 30)
	EXP
	VST1.P [V0.S4], 16(R1)
	FADD(31, 31, 0)
	SUBS   $1, R0
	BNE    loop
	FADDP(31, 31, 31)
	FADDP(31, 31, 31)
	FMOVS  F31, ret+32(FP)
	RET
