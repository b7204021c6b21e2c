//go:build !purego

#include "textflag.h"
#include "loops_arm64.h"

// Integers of 32 bits for NEON, four at a time.

#define ADD VADD V1.S4, V0.S4, V0.S4
#define SUB VSUB V1.S4, V0.S4, V0.S4
#define MUL MUL32(0, 0, 1)
#define MAX SMAX(0, 0, 1)
#define MIN SMIN(0, 0, 1)
#define BIT_AND VAND V1.B16, V0.B16, V0.B16
#define BIT_OR VORR V1.B16, V0.B16, V0.B16
#define BIT_XOR VEOR V1.B16, V0.B16, V0.B16

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
	SMAX(0, 0, 8) \
	SMIN(0, 0, 9)

// func clampInt32Lanes(n int, dst, src *int32, low, high int32)
TEXT ·clampInt32Lanes(SB), NOSPLIT, $0-32
	MOVW low+24(FP), R4
	VDUP R4, V8.S4
	MOVW high+28(FP), R4
	VDUP R4, V9.S4
	UNARY(CLAMP)

#define ABS ABS32(0, 0)
#define NEG NEG32(0, 0)

// func absInt32Lanes(n int, dst, src *int32)
TEXT ·absInt32Lanes(SB), NOSPLIT, $0-24
	UNARY(ABS)

// func negInt32Lanes(n int, dst, src *int32)
TEXT ·negInt32Lanes(SB), NOSPLIT, $0-24
	UNARY(NEG)

#define EQUAL CMEQ(0, 0, 1)
#define NOT_EQUAL \
	EQUAL     \
	NOT(0, 0)
#define LESS CMGT(0, 1, 0)
#define LESS_EQUAL CMGE(0, 1, 0)

// FALSE makes masks of the operands, where they are 0.
#define FALSE \
	CMEQ0(0, 0) \
	CMEQ0(1, 1)
#define AND \
	FALSE                      \
	VORR V1.B16, V0.B16, V0.B16 \
	NOT(0, 0)
#define OR \
	FALSE                      \
	VAND V1.B16, V0.B16, V0.B16 \
	NOT(0, 0)
#define NOR \
	FALSE                      \
	VAND V1.B16, V0.B16, V0.B16
#define XOR \
	FALSE                      \
	VEOR V1.B16, V0.B16, V0.B16

// func equalInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·equalInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(EQUAL)

// func notEqualInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·notEqualInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(NOT_EQUAL)

// func lessInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·lessInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(LESS)

// func lessEqualInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·lessEqualInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(LESS_EQUAL)

// func andInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·andInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(AND)

// func orInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·orInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(OR)

// func norInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·norInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(NOR)

// func xorInt32Lanes(n int, dst *uint8, a, b *int32)
TEXT ·xorInt32Lanes(SB), NOSPLIT, $0-32
	COMPARE(XOR)
