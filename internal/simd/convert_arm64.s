//go:build !purego

#include "textflag.h"

// Conversions for NEON, four elements at a time. Instructions that the assembler does
// not know are words: OP Vd, Vn with the numbers of the registers.

#define FCVTL(d, n) WORD $(0x0E217800 | n<<5 | d)
#define FCVTN(d, n) WORD $(0x0E216800 | n<<5 | d)
#define XTN16(d, n) WORD $(0x0E612800 | n<<5 | d)
#define XTN8(d, n) WORD $(0x0E212800 | n<<5 | d)
#define SXTL8(d, n) WORD $(0x0F08A400 | n<<5 | d)
#define SXTL16(d, n) WORD $(0x0F10A400 | n<<5 | d)
#define SCVTF(d, n) WORD $(0x4E21D800 | n<<5 | d)
#define FCVTZS(d, n) WORD $(0x4EA1B800 | n<<5 | d)
#define FCMEQ(d, n, m) WORD $(0x4E20E400 | m<<16 | n<<5 | d)
#define FCMGT(d, n, m) WORD $(0x6EA0E400 | m<<16 | n<<5 | d)
#define CMEQ0(d, n) WORD $(0x4EA09800 | n<<5 | d)
#define FCMEQ0(d, n) WORD $(0x4EA0D800 | n<<5 | d)
#define CMEQ0_8(d, n) WORD $(0x0E209800 | n<<5 | d)
#define BIC(d, n, m) WORD $(0x4E601C00 | m<<16 | n<<5 | d)
#define BIF(d, n, m) WORD $(0x6EE01C00 | m<<16 | n<<5 | d)

// CONVERT runs LOAD, which reads V0, OP, and STORE over n blocks.
#define CONVERT(LOAD, OP, STORE) \
	MOVD n+0(FP), R0    \
	MOVD dst+8(FP), R1  \
	MOVD src+16(FP), R2 \
loop:                       \
	LOAD          \
	OP            \
	STORE         \
	SUBS $1, R0   \
	BNE  loop     \
	RET

// CONSTANT makes all lanes of a register the number.
#define CONSTANT(value, v) \
	MOVD $value, R3 \
	VDUP R3, v.S4

#define LOAD8 FMOVS.P 4(R2), F0
#define LOAD16 VLD1.P 8(R2), [V0.H4]
#define INT8 \
	LOAD8       \
	SXTL8(0, 0) \
	SXTL16(0, 0)
#define UINT8 \
	LOAD8                    \
	VUSHLL $0, V0.B8, V0.H8  \
	VUSHLL $0, V0.H4, V0.S4
#define BOOL \
	LOAD8                    \
	CMEQ0_8(0, 0)            \
	SXTL8(0, 0)              \
	SXTL16(0, 0)             \
	BIC(0, 7, 0)
#define INT16 \
	LOAD16       \
	SXTL16(0, 0)
#define UINT16 \
	LOAD16                  \
	VUSHLL $0, V0.H4, V0.S4
#define WHOLE VLD1.P 16(R2), [V0.S4]
#define HALF \
	LOAD16      \
	FCVTL(0, 0)

#define NOTHING
#define TO_FLOAT SCVTF(0, 0)
#define UPPER VSHL $16, V0.S4, V0.S4

// The instruction gives the largest integer for what is above it, and 0 for NaN.
#define TO_INT \
	FCMGT(1, 5, 0) \
	FCVTZS(0, 0)   \
	BIF(0, 6, 1)
#define INT_TRUTH \
	CMEQ0(0, 0)  \
	BIC(0, 7, 0)
#define FLOAT_TRUTH \
	FCMEQ0(0, 0) \
	BIC(0, 7, 0)

// Half of the last place that stays, less one where that place is even, rounds by its
// carry.
#define TO_BFLOAT \
	FCMEQ(1, 0, 0)              \
	VUSHR $16, V0.S4, V2.S4     \
	VAND  V7.B16, V2.B16, V2.B16 \
	VADD  V6.S4, V0.S4, V0.S4   \
	VADD  V2.S4, V0.S4, V0.S4   \
	VUSHR $16, V0.S4, V0.S4     \
	BIF(0, 5, 1)

#define STORE32 VST1.P [V0.S4], 16(R1)
#define STORE16 \
	XTN16(0, 0)            \
	VST1.P [V0.H4], 8(R1)
#define STORE8 \
	XTN16(0, 0)      \
	XTN8(0, 0)       \
	FMOVS.P F0, 4(R1)
#define STORE_HALF \
	FCVTN(0, 0)            \
	VST1.P [V0.H4], 8(R1)

// func int8ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·int8ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(INT8, NOTHING, STORE32)

// func uint8ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·uint8ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, NOTHING, STORE32)

// func boolToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·boolToInt32Lanes(SB), NOSPLIT, $0-24
	CONSTANT(1, V7)
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
	CONSTANT(1, V7)
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
	CONSTANT(1, V7)
	CONVERT(WHOLE, INT_TRUTH, STORE8)

// func floatToInt32Lanes(n int, dst *byte, src *float32)
TEXT ·floatToInt32Lanes(SB), NOSPLIT, $0-24
	CONSTANT(0x4f000000, V5)
	CONSTANT(0x80000000, V6)
	CONVERT(WHOLE, TO_INT, STORE32)

// func floatTo8Lanes(n int, dst *byte, src *float32)
TEXT ·floatTo8Lanes(SB), NOSPLIT, $0-24
	CONSTANT(0x4f000000, V5)
	CONSTANT(0x80000000, V6)
	CONVERT(WHOLE, TO_INT, STORE8)

// func floatTo16Lanes(n int, dst *byte, src *float32)
TEXT ·floatTo16Lanes(SB), NOSPLIT, $0-24
	CONSTANT(0x4f000000, V5)
	CONSTANT(0x80000000, V6)
	CONVERT(WHOLE, TO_INT, STORE16)

// func floatToBoolLanes(n int, dst *byte, src *float32)
TEXT ·floatToBoolLanes(SB), NOSPLIT, $0-24
	CONSTANT(1, V7)
	CONVERT(WHOLE, FLOAT_TRUTH, STORE8)

// func floatToHalfLanes(n int, dst *byte, src *float32)
TEXT ·floatToHalfLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE_HALF)

// func floatToBFloatLanes(n int, dst *byte, src *float32)
TEXT ·floatToBFloatLanes(SB), NOSPLIT, $0-24
	CONSTANT(0x7fc0, V5)
	CONSTANT(0x7fff, V6)
	CONSTANT(1, V7)
	CONVERT(WHOLE, TO_BFLOAT, STORE16)
