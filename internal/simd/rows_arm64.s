//go:build !purego

#include "textflag.h"

// Row kernels for NEON, four elements at a time.

// func tapsBlocks(n int, y, x *float32, off *int, w *float32, t int)
TEXT ·tapsBlocks(SB), NOSPLIT, $0-48
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
