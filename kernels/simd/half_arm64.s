//go:build !purego

#include "textflag.h"

// Conversions of 16-bit floats for NEON, four at a time. Instructions that the
// assembler does not know are words: OP Vd, Vn with the numbers of the registers.

#define FCVTL(d, n) WORD $(0x0E217800 | n<<5 | d)
#define FCVTN(d, n) WORD $(0x0E216800 | n<<5 | d)
#define XTN(d, n) WORD $(0x0E612800 | n<<5 | d)
#define FCMEQ(d, n, m) WORD $(0x4E20E400 | m<<16 | n<<5 | d)
#define BIF(d, n, m) WORD $(0x6EE01C00 | m<<16 | n<<5 | d)

// func halfToFloatLanes(n int, dst *float32, src *uint16)
TEXT ·halfToFloatLanes(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2

loop:
	VLD1.P 8(R2), [V0.H4]
	FCVTL(0, 0)
	VST1.P [V0.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func floatToHalfLanes(n int, dst *uint16, src *float32)
TEXT ·floatToHalfLanes(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2

loop:
	VLD1.P 16(R2), [V0.S4]
	FCVTN(0, 0)
	VST1.P [V0.H4], 8(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func bfloatToFloatLanes(n int, dst *float32, src *uint16)
TEXT ·bfloatToFloatLanes(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2

loop:
	VLD1.P 8(R2), [V0.H4]
	VUSHLL $0, V0.H4, V0.S4
	VSHL   $16, V0.S4, V0.S4
	VST1.P [V0.S4], 16(R1)
	SUBS   $1, R0
	BNE    loop
	RET

// func floatToBFloatLanes(n int, dst *uint16, src *float32)
//
// Half of the last place that stays, less one where that place is even, rounds by its
// carry.
TEXT ·floatToBFloatLanes(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	MOVD $0x7fc0, R3
	VDUP R3, V5.S4
	MOVD $0x7fff, R3
	VDUP R3, V6.S4
	MOVD $1, R3
	VDUP R3, V7.S4

loop:
	VLD1.P 16(R2), [V0.S4]
	FCMEQ(1, 0, 0)
	VUSHR  $16, V0.S4, V2.S4
	VAND   V7.B16, V2.B16, V2.B16
	VADD   V6.S4, V0.S4, V0.S4
	VADD   V2.S4, V0.S4, V0.S4
	VUSHR  $16, V0.S4, V0.S4
	BIF(0, 5, 1)
	XTN(0, 0)
	VST1.P [V0.H4], 8(R1)
	SUBS   $1, R0
	BNE    loop
	RET
