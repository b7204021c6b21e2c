//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"

// Conversions for AVX2 and F16C, eight elements at a time, and for AVX-512, sixteen.

// CONVERT runs LOAD, which reads a register, OP, and STORE over n blocks of eight
// elements: OP16 and STORE16 on pairs of blocks where the processor has AVX-512. AX
// counts elements.
#define CONVERT(LOAD, OP, STORE, OP16, STORE16) \
	MOVQ n+0(FP), CX     \
	MOVQ dst+8(FP), DI   \
	MOVQ src+16(FP), SI  \
	XORQ AX, AX          \
	CMPB ·wide(SB), $0   \
	JEQ  single          \
	SUBQ $2, CX          \
	JLT  rest            \
pair:                        \
	LOAD(Z0)         \
	OP16             \
	STORE16          \
	ADDQ $16, AX     \
	SUBQ $2, CX      \
	JGE  pair        \
rest:                        \
	ADDQ $2, CX      \
	JEQ  done        \
single:                      \
	LOAD(Y0)         \
	OP               \
	STORE            \
	ADDQ $8, AX      \
	DECQ CX          \
	JNZ  single      \
done:                        \
	VZEROUPPER       \
	RET

LANES(lowByte, 0x000000ff)
LANES(lowHalf, 0x0000ffff)
LANES(lowBit, 0x00000001)
LANES(quiet, 0x00007fc0)
LANES(almostHalf, 0x00007fff)

#define INT8(r) VPMOVSXBD (SI)(AX*1), r
#define UINT8(r) VPMOVZXBD (SI)(AX*1), r
#define INT16(r) VPMOVSXWD (SI)(AX*2), r
#define UINT16(r) VPMOVZXWD (SI)(AX*2), r
#define WHOLE(r) VMOVUPS (SI)(AX*4), r
#define HALF(r) VCVTPH2PS (SI)(AX*2), r

#define NOTHING
#define TO_FLOAT VCVTDQ2PS Y0, Y0
#define TO_FLOAT_Z VCVTDQ2PS Z0, Z0
#define TO_INT VCVTTPS2DQ Y0, Y0
#define TO_INT_Z VCVTTPS2DQ Z0, Z0
#define UPPER VPSLLD $16, Y0, Y0
#define UPPER_Z VPSLLD $16, Z0, Z0
#define TRUTH_TO_FLOAT \
	INT_TRUTH \
	TO_FLOAT
#define TRUTH_TO_FLOAT_Z \
	INT_TRUTH_Z \
	TO_FLOAT_Z
#define INT_TRUTH \
	VPXOR    Y1, Y1, Y1           \
	VPCMPEQD Y1, Y0, Y0           \
	VPANDN   lowBit<>(SB), Y0, Y0
#define INT_TRUTH_Z \
	VPTESTMD     Z0, Z0, K1           \
	VPBROADCASTD.Z lowBit<>(SB), K1, Z0
#define FLOAT_TRUTH \
	VXORPS Y1, Y1, Y1           \
	VCMPPS $4, Y1, Y0, Y0       \
	VPAND  lowBit<>(SB), Y0, Y0

#define FLOAT_TRUTH_Z \
	VPXORD       Z1, Z1, Z1           \
	VCMPPS       $4, Z1, Z0, K1       \
	VPBROADCASTD.Z lowBit<>(SB), K1, Z0

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

#define TO_BFLOAT_Z \
	VCMPPS       $3, Z0, Z0, K1              \
	VPSRLD       $16, Z0, Z2                 \
	VPANDD.BCST  lowBit<>(SB), Z2, Z2        \
	VPADDD.BCST  almostHalf<>(SB), Z0, Z0    \
	VPADDD       Z2, Z0, Z0                  \
	VPSRLD       $16, Z0, Z0                 \
	VPBROADCASTD quiet<>(SB), K1, Z0

#define STORE32 VMOVUPS Y0, (DI)(AX*4)
#define STORE32_Z VMOVUPS Z0, (DI)(AX*4)
#define STORE16 \
	VPAND        lowHalf<>(SB), Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1            \
	VPACKUSDW    X1, X0, X0            \
	VMOVDQU      X0, (DI)(AX*2)
#define STORE16_Z VPMOVDW Z0, (DI)(AX*2)
#define STORE8 \
	VPAND        lowByte<>(SB), Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1            \
	VPACKUSDW    X1, X0, X0            \
	VPACKUSWB    X0, X0, X0            \
	VMOVQ        X0, (DI)(AX*1)
#define STORE8_Z VPMOVDB Z0, (DI)(AX*1)
#define STORE_HALF VCVTPS2PH $0, Y0, (DI)(AX*2)
#define STORE_HALF_Z VCVTPS2PH $0, Z0, (DI)(AX*2)

// func int8ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·int8ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(INT8, NOTHING, STORE32, NOTHING, STORE32_Z)

// func uint8ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·uint8ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, NOTHING, STORE32, NOTHING, STORE32_Z)

// func boolToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·boolToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, INT_TRUTH, STORE32, INT_TRUTH_Z, STORE32_Z)

// func int16ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·int16ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(INT16, NOTHING, STORE32, NOTHING, STORE32_Z)

// func uint16ToInt32Lanes(n int, dst *int32, src *byte)
TEXT ·uint16ToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(UINT16, NOTHING, STORE32, NOTHING, STORE32_Z)

// func int8ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·int8ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(INT8, TO_FLOAT, STORE32, TO_FLOAT_Z, STORE32_Z)

// func uint8ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·uint8ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, TO_FLOAT, STORE32, TO_FLOAT_Z, STORE32_Z)

// func boolToFloatLanes(n int, dst *float32, src *byte)
TEXT ·boolToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT8, TRUTH_TO_FLOAT, STORE32, TRUTH_TO_FLOAT_Z, STORE32_Z)

// func int16ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·int16ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(INT16, TO_FLOAT, STORE32, TO_FLOAT_Z, STORE32_Z)

// func uint16ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·uint16ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT16, TO_FLOAT, STORE32, TO_FLOAT_Z, STORE32_Z)

// func int32ToFloatLanes(n int, dst *float32, src *byte)
TEXT ·int32ToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_FLOAT, STORE32, TO_FLOAT_Z, STORE32_Z)

// func halfToFloatLanes(n int, dst *float32, src *byte)
TEXT ·halfToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(HALF, NOTHING, STORE32, NOTHING, STORE32_Z)

// func bfloatToFloatLanes(n int, dst *float32, src *byte)
TEXT ·bfloatToFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(UINT16, UPPER, STORE32, UPPER_Z, STORE32_Z)

// func int32To8Lanes(n int, dst *byte, src *int32)
TEXT ·int32To8Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE8, NOTHING, STORE8_Z)

// func int32To16Lanes(n int, dst *byte, src *int32)
TEXT ·int32To16Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE16, NOTHING, STORE16_Z)

// func int32ToBoolLanes(n int, dst *byte, src *int32)
TEXT ·int32ToBoolLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, INT_TRUTH, STORE8, INT_TRUTH_Z, STORE8_Z)

// func floatToInt32Lanes(n int, dst *byte, src *float32)
TEXT ·floatToInt32Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_INT, STORE32, TO_INT_Z, STORE32_Z)

// func floatTo8Lanes(n int, dst *byte, src *float32)
TEXT ·floatTo8Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_INT, STORE8, TO_INT_Z, STORE8_Z)

// func floatTo16Lanes(n int, dst *byte, src *float32)
TEXT ·floatTo16Lanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_INT, STORE16, TO_INT_Z, STORE16_Z)

// func floatToBoolLanes(n int, dst *byte, src *float32)
TEXT ·floatToBoolLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, FLOAT_TRUTH, STORE8, FLOAT_TRUTH_Z, STORE8_Z)

// func floatToHalfLanes(n int, dst *byte, src *float32)
TEXT ·floatToHalfLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, NOTHING, STORE_HALF, NOTHING, STORE_HALF_Z)

// func floatToBFloatLanes(n int, dst *byte, src *float32)
TEXT ·floatToBFloatLanes(SB), NOSPLIT, $0-24
	CONVERT(WHOLE, TO_BFLOAT, STORE16, TO_BFLOAT_Z, STORE16_Z)
