//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"

// Conversions for AVX2 and F16C, eight elements at a time.

// CONVERT runs LOAD, which reads Y0, OP, and STORE over n blocks. AX counts elements.
#define CONVERT(LOAD, OP, STORE) \
	MOVQ n+0(FP), CX    \
	MOVQ dst+8(FP), DI  \
	MOVQ src+16(FP), SI \
	XORQ AX, AX         \
loop:                       \
	LOAD            \
	OP              \
	STORE           \
	ADDQ $8, AX     \
	DECQ CX         \
	JNZ  loop       \
	VZEROUPPER      \
	RET

LANES(ones, 0x01010101)
LANES(lowByte, 0x000000ff)
LANES(lowHalf, 0x0000ffff)
LANES(lowBit, 0x00000001)
LANES(quiet, 0x00007fc0)
LANES(almostHalf, 0x00007fff)

#define INT8 VPMOVSXBD (SI)(AX*1), Y0
#define UINT8 VPMOVZXBD (SI)(AX*1), Y0
#define INT16 VPMOVSXWD (SI)(AX*2), Y0
#define UINT16 VPMOVZXWD (SI)(AX*2), Y0
#define WHOLE VMOVDQU (SI)(AX*4), Y0
#define BOOL \
	VMOVQ     (SI)(AX*1), X0       \
	VPXOR     X1, X1, X1           \
	VPCMPEQB  X1, X0, X0           \
	VPANDN    ones<>(SB), X0, X0   \
	VPMOVZXBD X0, Y0
#define HALF VCVTPH2PS (SI)(AX*2), Y0

#define NOTHING
#define TO_FLOAT VCVTDQ2PS Y0, Y0
#define TO_INT VCVTTPS2DQ Y0, Y0
#define UPPER VPSLLD $16, Y0, Y0
#define INT_TRUTH \
	VPXOR    Y1, Y1, Y1           \
	VPCMPEQD Y1, Y0, Y0           \
	VPANDN   lowBit<>(SB), Y0, Y0
#define FLOAT_TRUTH \
	VXORPS Y1, Y1, Y1           \
	VCMPPS $4, Y1, Y0, Y0       \
	VPAND  lowBit<>(SB), Y0, Y0

// Half of the last place that stays, less one where that place is even, rounds by its
// carry.
#define TO_BFLOAT \
	VCMPPS    $3, Y0, Y0, Y1          \
	VPSRLD    $16, Y0, Y2             \
	VPAND     lowBit<>(SB), Y2, Y2    \
	VPADDD    almostHalf<>(SB), Y0, Y0 \
	VPADDD    Y2, Y0, Y0              \
	VPSRLD    $16, Y0, Y0             \
	VMOVUPS   quiet<>(SB), Y2         \
	VBLENDVPS Y1, Y2, Y0, Y0

#define STORE32 VMOVDQU Y0, (DI)(AX*4)
#define STORE16 \
	VPAND        lowHalf<>(SB), Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1            \
	VPACKUSDW    X1, X0, X0            \
	VMOVDQU      X0, (DI)(AX*2)
#define STORE8 \
	VPAND        lowByte<>(SB), Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1            \
	VPACKUSDW    X1, X0, X0            \
	VPACKUSWB    X0, X0, X0            \
	VMOVQ        X0, (DI)(AX*1)
#define STORE_HALF VCVTPS2PH $0, Y0, (DI)(AX*2)

// func int8ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·int8ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(INT8, NOTHING, STORE32)

// func uint8ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·uint8ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, NOTHING, STORE32)

// func boolToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·boolToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(BOOL, NOTHING, STORE32)

// func int16ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·int16ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(INT16, NOTHING, STORE32)

// func uint16ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·uint16ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(UINT16, NOTHING, STORE32)

// func int8ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·int8ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(INT8, TO_FLOAT, STORE32)

// func uint8ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·uint8ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, TO_FLOAT, STORE32)

// func boolToFloatLanes(n int, dst *float32, src *byte)
TEXT ·boolToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(BOOL, TO_FLOAT, STORE32)

// func int16ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·int16ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(INT16, TO_FLOAT, STORE32)

// func uint16ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·uint16ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT16, TO_FLOAT, STORE32)

// func int32ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·int32ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_FLOAT, STORE32)

// func halfToFloatLanes(n int, dst *float32, src *byte)
TEXT ·halfToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(HALF, NOTHING, STORE32)

// func bfloatToFloatLanes(n int, dst *float32, src *byte)
TEXT ·bfloatToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT16, UPPER, STORE32)

// func int32To8Lanes(n int, dst *byte, src *int32)
TEXT ·int32To8Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE8)

// func int32To16Lanes(n int, dst *byte, src *int32)
TEXT ·int32To16Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE16)

// func int32ToBoolLanes(n int, dst *byte, src *int32)
TEXT ·int32ToBoolLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, INT_TRUTH, STORE8)

// func floatToInt32Lanes(n int, dst *byte, src *float32)
TEXT ·floatToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_INT, STORE32)

// func floatTo8Lanes(n int, dst *byte, src *float32)
TEXT ·floatTo8Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_INT, STORE8)

// func floatTo16Lanes(n int, dst *byte, src *float32)
TEXT ·floatTo16Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_INT, STORE16)

// func floatToBoolLanes(n int, dst *byte, src *float32)
TEXT ·floatToBoolLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, FLOAT_TRUTH, STORE8)

// func floatToHalfLanes(n int, dst *byte, src *float32)
TEXT ·floatToHalfLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE_HALF)

// func floatToBFloatLanes(n int, dst *byte, src *float32)
TEXT ·floatToBFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_BFLOAT, STORE16)
