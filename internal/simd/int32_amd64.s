//go:build !purego

#include "textflag.h"
#include "loops_amd64.h"

// Integers of 32 bits for AVX2, eight at a time.

#define ADD VPADDD Y1, Y0, Y0
#define SUB VPSUBD Y1, Y0, Y0
#define MUL VPMULLD Y1, Y0, Y0
#define MAX VPMAXSD Y1, Y0, Y0
#define MIN VPMINSD Y1, Y0, Y0
#define BIT_AND VPAND Y1, Y0, Y0
#define BIT_OR VPOR Y1, Y0, Y0
#define BIT_XOR VPXOR Y1, Y0, Y0

// func addInt32Lanes(n int, dst, a, b *int32)
TEXT ·addInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(ADD)

// func subInt32Lanes(n int, dst, a, b *int32)
TEXT ·subInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(SUB)

// func mulInt32Lanes(n int, dst, a, b *int32)
TEXT ·mulInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(MUL)

// func maxInt32Lanes(n int, dst, a, b *int32)
TEXT ·maxInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(MAX)

// func minInt32Lanes(n int, dst, a, b *int32)
TEXT ·minInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(MIN)

// func bitAndInt32Lanes(n int, dst, a, b *int32)
TEXT ·bitAndInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(BIT_AND)

// func bitOrInt32Lanes(n int, dst, a, b *int32)
TEXT ·bitOrInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(BIT_OR)

// func bitXorInt32Lanes(n int, dst, a, b *int32)
TEXT ·bitXorInt32Lanes(SB), NOSPLIT, $0-32
	BINARY(BIT_XOR)

#define CLAMP \
	VPMAXSD Y0, Y14, Y0 \
	VPMINSD Y0, Y15, Y0

// func clampInt32Lanes(n int, dst, src *int32, low, high int32)
TEXT ·clampInt32Lanes(SB), NOSPLIT, $0-32
	VBROADCASTSS low+24(FP), Y14
	VBROADCASTSS high+28(FP), Y15
	UNARY(CLAMP)

#define ABS VPABSD Y0, Y0
#define NEG \
	VPXOR  Y1, Y1, Y1 \
	VPSUBD Y0, Y1, Y0

// func absInt32Lanes(n int, dst, src *int32)
TEXT ·absInt32Lanes(SB), NOSPLIT, $0-24
	UNARY(ABS)

// func negInt32Lanes(n int, dst, src *int32)
TEXT ·negInt32Lanes(SB), NOSPLIT, $0-24
	UNARY(NEG)

#define EQUAL VPCMPEQD Y1, Y0, Y0
#define LESS VPCMPGTD Y0, Y1, Y0
#define GREATER VPCMPGTD Y1, Y0, Y0

// FALSE makes masks of the operands, where they are 0.
#define FALSE \
	VPXOR    Y2, Y2, Y2 \
	VPCMPEQD Y2, Y0, Y0 \
	VPCMPEQD Y2, Y1, Y1
#define EITHER_FALSE \
	FALSE            \
	VPOR  Y1, Y0, Y0
#define BOTH_FALSE \
	FALSE            \
	VPAND Y1, Y0, Y0
#define ONE_FALSE \
	FALSE            \
	VPXOR Y1, Y0, Y0

// func equalInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·equalInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(EQUAL, VPAND)

// func notEqualInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·notEqualInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(EQUAL, VPANDN)

// func lessInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·lessInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(LESS, VPAND)

// func lessEqualInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·lessEqualInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(GREATER, VPANDN)

// func andInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·andInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(EITHER_FALSE, VPANDN)

// func orInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·orInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(BOTH_FALSE, VPANDN)

// func norInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·norInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(BOTH_FALSE, VPAND)

// func xorInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·xorInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(ONE_FALSE, VPAND)
