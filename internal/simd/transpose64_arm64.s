//go:build !purego

#include "textflag.h"

// func transposeQuads(n int, dst *uint64, ds int, src *uint64, ss int)
//
// n tiles of 4×4, one below the other in src and side by side in dst. Strides are in
// bytes.
TEXT ·transposeQuads(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD ds+16(FP), R2
	MOVD src+24(FP), R3
	MOVD ss+32(FP), R4
	ADD  R2, R1, R5
	ADD  R2, R5, R6
	ADD  R2, R6, R7

tile:
	VLD1   (R3), [V0.D2, V1.D2]
	ADD    R4, R3
	VLD1   (R3), [V2.D2, V3.D2]
	ADD    R4, R3
	VLD1   (R3), [V4.D2, V5.D2]
	ADD    R4, R3
	VLD1   (R3), [V6.D2, V7.D2]
	ADD    R4, R3
	VZIP1  V2.D2, V0.D2, V16.D2
	VZIP1  V6.D2, V4.D2, V17.D2
	VZIP2  V2.D2, V0.D2, V18.D2
	VZIP2  V6.D2, V4.D2, V19.D2
	VZIP1  V3.D2, V1.D2, V20.D2
	VZIP1  V7.D2, V5.D2, V21.D2
	VZIP2  V3.D2, V1.D2, V22.D2
	VZIP2  V7.D2, V5.D2, V23.D2
	VST1.P [V16.D2, V17.D2], 32(R1)
	VST1.P [V18.D2, V19.D2], 32(R5)
	VST1.P [V20.D2, V21.D2], 32(R6)
	VST1.P [V22.D2, V23.D2], 32(R7)
	SUBS   $1, R0
	BNE    tile
	RET
