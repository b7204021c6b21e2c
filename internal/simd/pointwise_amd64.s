//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"
#include "loops_amd64.h"

// Arithmetic on each element for AVX2, eight at a time.

#define ADD VADDPS Y1, Y0, Y0
#define SUB VSUBPS Y1, Y0, Y0
#define MUL VMULPS Y1, Y0, Y0
#define DIV VDIVPS Y1, Y0, Y0
#define SCALED_ADD \
	VMULPS Y15, Y1, Y1 \
	VADDPS Y1, Y0, Y0

// MAXPS and MINPS give their second operand, here Y1, where either is a NaN: a NaN in
// Y0 is put back.
#define MAX \
	VMAXPS    Y1, Y0, Y1     \
	VCMPPS    $3, Y0, Y0, Y2 \
	VBLENDVPS Y2, Y0, Y1, Y0
#define MIN \
	VMINPS    Y1, Y0, Y1     \
	VCMPPS    $3, Y0, Y0, Y2 \
	VBLENDVPS Y2, Y0, Y1, Y0

// func addLanes(n int, dst, a, b *float32)
TEXT ·addLanes(SB), NOSPLIT, $0-32
	BINARY(ADD)

// func addScaledLanes(n int, dst, a, b *float32, alpha float32)
TEXT ·addScaledLanes(SB), NOSPLIT, $0-36
	VBROADCASTSS alpha+32(FP), Y15
	BINARY(SCALED_ADD)

// func subLanes(n int, dst, a, b *float32)
TEXT ·subLanes(SB), NOSPLIT, $0-32
	BINARY(SUB)

// func mulLanes(n int, dst, a, b *float32)
TEXT ·mulLanes(SB), NOSPLIT, $0-32
	BINARY(MUL)

// func divLanes(n int, dst, a, b *float32)
TEXT ·divLanes(SB), NOSPLIT, $0-32
	BINARY(DIV)

// func maximumLanes(n int, dst, a, b *float32)
TEXT ·maximumLanes(SB), NOSPLIT, $0-32
	BINARY(MAX)

// func minimumLanes(n int, dst, a, b *float32)
TEXT ·minimumLanes(SB), NOSPLIT, $0-32
	BINARY(MIN)

// The operand is the second one, so that a NaN stays.
#define CLAMP \
	VMAXPS Y0, Y14, Y0 \
	VMINPS Y0, Y15, Y0

// func clampLanes(n int, dst, src *float32, low, high float32)
TEXT ·clampLanes(SB), NOSPLIT, $0-32
	VBROADCASTSS low+24(FP), Y14
	VBROADCASTSS high+28(FP), Y15
	UNARY(CLAMP)

// The sign bit chooses.
#define LEAKY \
	VMULPS    Y15, Y0, Y1    \
	VBLENDVPS Y0, Y1, Y0, Y0

// func leakyReLULanes(n int, dst, src *float32, slope float32)
TEXT ·leakyReLULanes(SB), NOSPLIT, $0-28
	VBROADCASTSS slope+24(FP), Y15
	UNARY(LEAKY)

#define ABS \
	VMOVUPS signBit<>(SB), Y1 \
	VANDNPS Y0, Y1, Y0
#define NEG VXORPS signBit<>(SB), Y0, Y0
#define SIGN \
	VXORPS Y1, Y1, Y1        \
	VCMPPS $1, Y1, Y0, Y2    \
	VCMPPS $1, Y0, Y1, Y0    \
	VANDPS one<>(SB), Y2, Y2 \
	VANDPS one<>(SB), Y0, Y0 \
	VSUBPS Y2, Y0, Y0
#define FLOOR VROUNDPS $1, Y0, Y0
#define CEIL VROUNDPS $2, Y0, Y0
#define TRUNC VROUNDPS $3, Y0, Y0
#define ROUND VROUNDPS $0, Y0, Y0
#define RECIPROCAL \
	VMOVUPS one<>(SB), Y1 \
	VDIVPS  Y0, Y1, Y0
#define SQRT VSQRTPS Y0, Y0
#define RSQRT \
	SQRT       \
	RECIPROCAL

// func absLanes(n int, dst, src *float32)
TEXT ·absLanes(SB), NOSPLIT, $0-24
	UNARY(ABS)

// func negLanes(n int, dst, src *float32)
TEXT ·negLanes(SB), NOSPLIT, $0-24
	UNARY(NEG)

// func signLanes(n int, dst, src *float32)
TEXT ·signLanes(SB), NOSPLIT, $0-24
	UNARY(SIGN)

// func floorLanes(n int, dst, src *float32)
TEXT ·floorLanes(SB), NOSPLIT, $0-24
	UNARY(FLOOR)

// func ceilLanes(n int, dst, src *float32)
TEXT ·ceilLanes(SB), NOSPLIT, $0-24
	UNARY(CEIL)

// func truncLanes(n int, dst, src *float32)
TEXT ·truncLanes(SB), NOSPLIT, $0-24
	UNARY(TRUNC)

// func roundLanes(n int, dst, src *float32)
TEXT ·roundLanes(SB), NOSPLIT, $0-24
	UNARY(ROUND)

// func reciprocalLanes(n int, dst, src *float32)
TEXT ·reciprocalLanes(SB), NOSPLIT, $0-24
	UNARY(RECIPROCAL)

// func sqrtLanes(n int, dst, src *float32)
TEXT ·sqrtLanes(SB), NOSPLIT, $0-24
	UNARY(SQRT)

// func rsqrtLanes(n int, dst, src *float32)
TEXT ·rsqrtLanes(SB), NOSPLIT, $0-24
	UNARY(RSQRT)

#define EQUAL VCMPPS $0, Y1, Y0, Y0
#define LESS VCMPPS $1, Y1, Y0, Y0
#define LESS_EQUAL VCMPPS $2, Y1, Y0, Y0

// func equalLanes(n int, dst *uint8, a, b *float32)
TEXT ·equalLanes(SB), NOSPLIT, $0-32
	COMPARE(EQUAL, VPAND)

// func notEqualLanes(n int, dst *uint8, a, b *float32)
TEXT ·notEqualLanes(SB), NOSPLIT, $0-32
	COMPARE(EQUAL, VPANDN)

// func lessLanes(n int, dst *uint8, a, b *float32)
TEXT ·lessLanes(SB), NOSPLIT, $0-32
	COMPARE(LESS, VPAND)

// func lessEqualLanes(n int, dst *uint8, a, b *float32)
TEXT ·lessEqualLanes(SB), NOSPLIT, $0-32
	COMPARE(LESS_EQUAL, VPAND)

// func selectLanes(n int, dst *uint32, mask *uint8, a, b *uint32)
TEXT ·selectLanes(SB), NOSPLIT, $0-40
	MOVQ  n+0(FP), CX
	MOVQ  dst+8(FP), DI
	MOVQ  mask+16(FP), BX
	MOVQ  a+24(FP), SI
	MOVQ  b+32(FP), DX
	XORQ  AX, AX
	VPXOR Y2, Y2, Y2

loop:
	VPMOVZXBD (BX)(AX*1), Y0
	VPCMPEQD  Y2, Y0, Y0
	VMOVUPS   (SI)(AX*4), Y1
	VBLENDVPS Y0, (DX)(AX*4), Y1, Y0
	VMOVUPS   Y0, (DI)(AX*4)
	ADDQ      $8, AX
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET
