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

// Eight rows are zipped with those four further down, three times: then they are the
// columns.

// func transposeHalves(n int, dst *uint16, ds int, src *uint16, ss int)
TEXT ·transposeHalves(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD ds+16(FP), R2
	MOVD src+24(FP), R3
	MOVD ss+32(FP), R4

tile:
	VLD1   (R3), [V0.H8]
	ADD    R4, R3
	VLD1   (R3), [V1.H8]
	ADD    R4, R3
	VLD1   (R3), [V2.H8]
	ADD    R4, R3
	VLD1   (R3), [V3.H8]
	ADD    R4, R3
	VLD1   (R3), [V4.H8]
	ADD    R4, R3
	VLD1   (R3), [V5.H8]
	ADD    R4, R3
	VLD1   (R3), [V6.H8]
	ADD    R4, R3
	VLD1   (R3), [V7.H8]
	ADD    R4, R3
	VZIP1  V4.H8, V0.H8, V16.H8
	VZIP2  V4.H8, V0.H8, V17.H8
	VZIP1  V5.H8, V1.H8, V18.H8
	VZIP2  V5.H8, V1.H8, V19.H8
	VZIP1  V6.H8, V2.H8, V20.H8
	VZIP2  V6.H8, V2.H8, V21.H8
	VZIP1  V7.H8, V3.H8, V22.H8
	VZIP2  V7.H8, V3.H8, V23.H8
	VZIP1  V20.H8, V16.H8, V0.H8
	VZIP2  V20.H8, V16.H8, V1.H8
	VZIP1  V21.H8, V17.H8, V2.H8
	VZIP2  V21.H8, V17.H8, V3.H8
	VZIP1  V22.H8, V18.H8, V4.H8
	VZIP2  V22.H8, V18.H8, V5.H8
	VZIP1  V23.H8, V19.H8, V6.H8
	VZIP2  V23.H8, V19.H8, V7.H8
	VZIP1  V4.H8, V0.H8, V16.H8
	VZIP2  V4.H8, V0.H8, V17.H8
	VZIP1  V5.H8, V1.H8, V18.H8
	VZIP2  V5.H8, V1.H8, V19.H8
	VZIP1  V6.H8, V2.H8, V20.H8
	VZIP2  V6.H8, V2.H8, V21.H8
	VZIP1  V7.H8, V3.H8, V22.H8
	VZIP2  V7.H8, V3.H8, V23.H8
	MOVD   R1, R5
	VST1   [V16.H8], (R5)
	ADD    R2, R5
	VST1   [V17.H8], (R5)
	ADD    R2, R5
	VST1   [V18.H8], (R5)
	ADD    R2, R5
	VST1   [V19.H8], (R5)
	ADD    R2, R5
	VST1   [V20.H8], (R5)
	ADD    R2, R5
	VST1   [V21.H8], (R5)
	ADD    R2, R5
	VST1   [V22.H8], (R5)
	ADD    R2, R5
	VST1   [V23.H8], (R5)
	ADD    R2, R5
	ADD    $16, R1
	SUBS   $1, R0
	BNE    tile
	RET

// func transposeBytes(n int, dst *uint8, ds int, src *uint8, ss int)
TEXT ·transposeBytes(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD ds+16(FP), R2
	MOVD src+24(FP), R3
	MOVD ss+32(FP), R4

tile:
	VLD1   (R3), [V0.B8]
	ADD    R4, R3
	VLD1   (R3), [V1.B8]
	ADD    R4, R3
	VLD1   (R3), [V2.B8]
	ADD    R4, R3
	VLD1   (R3), [V3.B8]
	ADD    R4, R3
	VLD1   (R3), [V4.B8]
	ADD    R4, R3
	VLD1   (R3), [V5.B8]
	ADD    R4, R3
	VLD1   (R3), [V6.B8]
	ADD    R4, R3
	VLD1   (R3), [V7.B8]
	ADD    R4, R3
	VZIP1  V4.B8, V0.B8, V16.B8
	VZIP2  V4.B8, V0.B8, V17.B8
	VZIP1  V5.B8, V1.B8, V18.B8
	VZIP2  V5.B8, V1.B8, V19.B8
	VZIP1  V6.B8, V2.B8, V20.B8
	VZIP2  V6.B8, V2.B8, V21.B8
	VZIP1  V7.B8, V3.B8, V22.B8
	VZIP2  V7.B8, V3.B8, V23.B8
	VZIP1  V20.B8, V16.B8, V0.B8
	VZIP2  V20.B8, V16.B8, V1.B8
	VZIP1  V21.B8, V17.B8, V2.B8
	VZIP2  V21.B8, V17.B8, V3.B8
	VZIP1  V22.B8, V18.B8, V4.B8
	VZIP2  V22.B8, V18.B8, V5.B8
	VZIP1  V23.B8, V19.B8, V6.B8
	VZIP2  V23.B8, V19.B8, V7.B8
	VZIP1  V4.B8, V0.B8, V16.B8
	VZIP2  V4.B8, V0.B8, V17.B8
	VZIP1  V5.B8, V1.B8, V18.B8
	VZIP2  V5.B8, V1.B8, V19.B8
	VZIP1  V6.B8, V2.B8, V20.B8
	VZIP2  V6.B8, V2.B8, V21.B8
	VZIP1  V7.B8, V3.B8, V22.B8
	VZIP2  V7.B8, V3.B8, V23.B8
	MOVD   R1, R5
	VST1   [V16.B8], (R5)
	ADD    R2, R5
	VST1   [V17.B8], (R5)
	ADD    R2, R5
	VST1   [V18.B8], (R5)
	ADD    R2, R5
	VST1   [V19.B8], (R5)
	ADD    R2, R5
	VST1   [V20.B8], (R5)
	ADD    R2, R5
	VST1   [V21.B8], (R5)
	ADD    R2, R5
	VST1   [V22.B8], (R5)
	ADD    R2, R5
	VST1   [V23.B8], (R5)
	ADD    R2, R5
	ADD    $8, R1
	SUBS   $1, R0
	BNE    tile
	RET

// func transposeQuads(n int, dst *uint64, ds int, src *uint64, ss int)
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
