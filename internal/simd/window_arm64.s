//go:build !purego

#include "textflag.h"

// Rows of windows, for NEON: R1 and R2 run along a row of y and of x, R9 counts its
// blocks of four. The last block is one with the end of the row. Instructions that
// the assembler does not know are words, as in rows_arm64.s.

#define FADD(d, n, m) WORD $(0x4E20D400 | m<<16 | n<<5 | d)
#define FCMGT(d, n, m) WORD $(0x6EA0E400 | m<<16 | n<<5 | d)
#define FCMEQ(d, n, m) WORD $(0x4E20E400 | m<<16 | n<<5 | d)
#define ORN(d, n, m) WORD $(0x4EE01C00 | m<<16 | n<<5 | d)
#define BIT(d, n, m) WORD $(0x6EA01C00 | m<<16 | n<<5 | d)

// func sumTaps4(rows, n int, y, x *float32, off *int, taps, ys, xs, last int)
TEXT ·sumTaps4(SB), NOSPLIT, $0-72
	MOVD rows+0(FP), R0
	MOVD n+8(FP), R10
	MOVD y+16(FP), R11
	MOVD x+24(FP), R12
	MOVD off+32(FP), R3
	MOVD taps+40(FP), R5
	MOVD ys+48(FP), R13
	MOVD xs+56(FP), R14
	MOVD last+64(FP), R15

row:
	MOVD R11, R1
	MOVD R12, R2
	MOVD R10, R9

block:
	CBNZ R9, taps
	ADD  R15, R11, R1
	ADD  R15, R12, R2

taps:
	MOVD   R3, R6
	MOVD   R5, R8
	MOVD.P 8(R6), R7
	ADD    R7<<2, R2, R7
	VLD1   (R7), [V0.S4]
	B      test

tap:
	MOVD.P 8(R6), R7
	ADD    R7<<2, R2, R7
	VLD1   (R7), [V1.S4]
	FADD(0, 0, 1)

test:
	SUBS   $1, R8
	BNE    tap
	VST1.P [V0.S4], 16(R1)
	ADD    $16, R2
	SUBS   $1, R9
	BPL    block

	ADD  R13, R11
	ADD  R14, R12
	SUBS $1, R0
	BNE  row
	RET

// func maxTaps4(rows, n int, y *float32, at *int32, x *float32, off *int, tag *int32, taps, ys, xs, last int, signs uint32)
//
// V7 turns the signs around where the least element is wanted. // R4 runs along at; a lane is taken over where x is greater or NaN.
TEXT ·maxTaps4(SB), NOSPLIT, $0-92
	MOVD rows+0(FP), R0
	MOVD n+8(FP), R10
	MOVD y+16(FP), R11
	MOVD at+24(FP), R16
	MOVD x+32(FP), R12
	MOVD off+40(FP), R3
	MOVD tag+48(FP), R17
	MOVD taps+56(FP), R5
	MOVD ys+64(FP), R13
	MOVD xs+72(FP), R14
	MOVD last+80(FP), R15
	MOVWU signs+88(FP), R6
	VDUP R6, V7.S4

row:
	MOVD R11, R1
	MOVD R16, R4
	MOVD R12, R2
	MOVD R10, R9

block:
	CBNZ R9, taps
	ADD  R15, R11, R1
	ADD  R15, R16, R4
	ADD  R15, R12, R2

taps:
	MOVD    R3, R6
	MOVD    R17, R19
	MOVD    R5, R8
	MOVD.P  8(R6), R7
	ADD     R7<<2, R2, R7
	VLD1    (R7), [V1.S4]
	VEOR    V7.B16, V1.B16, V1.B16
	VLD1R.P 4(R19), [V2.S4]
	B       test

tap:
	MOVD.P  8(R6), R7
	ADD     R7<<2, R2, R7
	VLD1    (R7), [V0.S4]
	VEOR    V7.B16, V0.B16, V0.B16
	VLD1R.P 4(R19), [V3.S4]
	FCMGT(5, 0, 1)
	FCMEQ(6, 0, 0)
	ORN(5, 5, 6)
	BIT(1, 0, 5)
	BIT(2, 3, 5)

test:
	SUBS   $1, R8
	BNE    tap
	VEOR   V7.B16, V1.B16, V1.B16
	VST1.P [V1.S4], 16(R1)
	VST1.P [V2.S4], 16(R4)
	ADD    $16, R2
	SUBS   $1, R9
	BPL    block

	ADD  R13, R11
	ADD  R13, R16
	ADD  R14, R12
	SUBS $1, R0
	BNE  row
	RET
