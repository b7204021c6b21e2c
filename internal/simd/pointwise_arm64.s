//go:build !purego

#include "textflag.h"
#include "loops_arm64.h"

// Arithmetic on each element for NEON, four at a time.

#define ADD FADD(0, 0, 1)
#define SUB FSUB(0, 0, 1)
#define MUL FMUL(0, 0, 1)
#define DIV FDIV(0, 0, 1)
#define MAX FMAX(0, 0, 1)
#define MIN FMIN(0, 0, 1)
#define SCALED_ADD \
	FMUL(1, 1, 8) \
	FADD(0, 0, 1)

// func addLanes(n int, dst, a, b *float32)
TEXT ·addLanes(SB), NOSPLIT, $0-32
	BINARY(ADD)

// func addScaledLanes(n int, dst, a, b *float32, alpha float32)
TEXT ·addScaledLanes(SB), NOSPLIT, $0-36
	FMOVS alpha+32(FP), F8
	VDUP  V8.S[0], V8.S4
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

#define CLAMP \
	FMAX(0, 0, 8) \
	FMIN(0, 0, 9)

// func clampLanes(n int, dst, src *float32, low, high float32)
TEXT ·clampLanes(SB), NOSPLIT, $0-32
	FMOVS low+24(FP), F8
	VDUP  V8.S[0], V8.S4
	FMOVS high+28(FP), F9
	VDUP  V9.S[0], V9.S4
	UNARY(CLAMP)

// The sign bit chooses.
#define LEAKY \
	FMUL(1, 0, 8) \
	CMLT0(2, 0)   \
	BIT(0, 1, 2)

// func leakyReLULanes(n int, dst, src *float32, slope float32)
TEXT ·leakyReLULanes(SB), NOSPLIT, $0-28
	FMOVS slope+24(FP), F8
	VDUP  V8.S[0], V8.S4
	UNARY(LEAKY)

#define ABS FABS(0, 0)
#define NEG FNEG(0, 0)
#define SIGN \
	FCMGT0(1, 0)               \
	FCMLT0(2, 0)               \
	VAND V8.B16, V1.B16, V1.B16 \
	VAND V8.B16, V2.B16, V2.B16 \
	FSUB(0, 1, 2)
#define FLOOR FRINTM(0, 0)
#define CEIL FRINTP(0, 0)
#define TRUNC FRINTZ(0, 0)
#define ROUND FRINTN(0, 0)
#define RECIPROCAL FDIV(0, 8, 0)
#define SQRT FSQRT(0, 0)
#define RSQRT \
	SQRT       \
	RECIPROCAL

// ONE makes V8 four times 1.
#define ONE \
	FMOVS $1.0, F8         \
	VDUP  V8.S[0], V8.S4

// func absLanes(n int, dst, src *float32)
TEXT ·absLanes(SB), NOSPLIT, $0-24
	UNARY(ABS)

// func negLanes(n int, dst, src *float32)
TEXT ·negLanes(SB), NOSPLIT, $0-24
	UNARY(NEG)

// func signLanes(n int, dst, src *float32)
TEXT ·signLanes(SB), NOSPLIT, $0-24
	ONE
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
	ONE
	UNARY(RECIPROCAL)

// func sqrtLanes(n int, dst, src *float32)
TEXT ·sqrtLanes(SB), NOSPLIT, $0-24
	UNARY(SQRT)

// func rsqrtLanes(n int, dst, src *float32)
TEXT ·rsqrtLanes(SB), NOSPLIT, $0-24
	ONE
	UNARY(RSQRT)

#define EQUAL FCMEQ(0, 0, 1)
#define NOT_EQUAL \
	EQUAL     \
	NOT(0, 0)
#define LESS FCMGT(0, 1, 0)
#define LESS_EQUAL FCMGE(0, 1, 0)

// func equalLanes(n int, dst *uint8, a, b *float32)
TEXT ·equalLanes(SB), NOSPLIT, $0-32
	COMPARE(EQUAL)

// func notEqualLanes(n int, dst *uint8, a, b *float32)
TEXT ·notEqualLanes(SB), NOSPLIT, $0-32
	COMPARE(NOT_EQUAL)

// func lessLanes(n int, dst *uint8, a, b *float32)
TEXT ·lessLanes(SB), NOSPLIT, $0-32
	COMPARE(LESS)

// func lessEqualLanes(n int, dst *uint8, a, b *float32)
TEXT ·lessEqualLanes(SB), NOSPLIT, $0-32
	COMPARE(LESS_EQUAL)

// func selectLanes(n int, dst *uint32, mask *uint8, a, b *uint32)
TEXT ·selectLanes(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD mask+16(FP), R4
	MOVD a+24(FP), R2
	MOVD b+32(FP), R3

loop:
	FMOVS.P 4(R4), F0
	VUSHLL  $0, V0.B8, V0.H8
	VUSHLL  $0, V0.H4, V0.S4
	CMEQ0(0, 0)
	VLD1.P  16(R2), [V1.S4]
	VLD1.P  16(R3), [V2.S4]
	BSL(0, 2, 1)
	VST1.P  [V0.S4], 16(R1)
	SUBS    $1, R0
	BNE     loop
	RET
