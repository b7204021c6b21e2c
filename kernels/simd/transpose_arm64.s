//go:build !purego

#include "textflag.h"

// func transposeLanes(n int, dst *uint32, ds int, src *uint32, ss int)
//
// n tiles of 4×4, one below the other in src and side by side in dst. Strides are in
// bytes.
TEXT ·transposeLanes(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD ds+16(FP), R2
	MOVD src+24(FP), R3
	MOVD ss+32(FP), R4
	ADD  R2, R1, R5
	ADD  R2, R5, R6
	ADD  R2, R6, R7

tile:
	VLD1  (R3), [V0.S4]
	ADD   R4, R3
	VLD1  (R3), [V1.S4]
	ADD   R4, R3
	VLD1  (R3), [V2.S4]
	ADD   R4, R3
	VLD1  (R3), [V3.S4]
	ADD   R4, R3
	VZIP1 V2.S4, V0.S4, V4.S4
	VZIP1 V3.S4, V1.S4, V5.S4
	VZIP2 V2.S4, V0.S4, V6.S4
	VZIP2 V3.S4, V1.S4, V7.S4
	VZIP1 V5.S4, V4.S4, V0.S4
	VZIP2 V5.S4, V4.S4, V1.S4
	VZIP1 V7.S4, V6.S4, V2.S4
	VZIP2 V7.S4, V6.S4, V3.S4
	VST1  [V0.S4], (R1)
	VST1  [V1.S4], (R5)
	VST1  [V2.S4], (R6)
	VST1  [V3.S4], (R7)
	ADD   $16, R1
	ADD   $16, R5
	ADD   $16, R6
	ADD   $16, R7
	SUBS  $1, R0
	BNE   tile
	RET
