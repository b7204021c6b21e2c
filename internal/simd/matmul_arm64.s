//go:build !purego

#include "textflag.h"

// Tiles of a matrix product, for NEON. Each adds Σ_p a[i,p]·b[p,j] to a tile of from,
// held in registers: four (16 columns) or one (4 columns) for each row, and stores it
// to c. R0 counts p, R8 to R13 point to the rows of a, R2 and R3 are its strides, R4
// and R5 are b and its row stride, R14 and R15 the same of from, R6 and R7 of c.
// Strides are in bytes.

#define ARGS \
	MOVD k+0(FP), R0    \
	MOVD a+8(FP), R8    \
	MOVD ars+16(FP), R2 \
	MOVD acs+24(FP), R3 \
	MOVD b+32(FP), R4   \
	MOVD ldb+40(FP), R5 \
	MOVD c+64(FP), R6   \
	MOVD ldc+72(FP), R7 \
	ADD  R2, R8, R9     \
	ADD  R2, R9, R10    \
	ADD  R2, R10, R11   \
	ADD  R2, R11, R12   \
	ADD  R2, R12, R13   \
	MOVD from+48(FP), R14 \
	MOVD ldf+56(FP), R15

#define LOAD4(a, b, c, d) \
	VLD1 (R14), [a.S4, b.S4, c.S4, d.S4] \
	ADD  R15, R14

#define STORE4(a, b, c, d) \
	VST1 [a.S4, b.S4, c.S4, d.S4], (R6) \
	ADD  R7, R6

#define B4 \
	VLD1 (R4), [V24.S4, V25.S4, V26.S4, V27.S4] \
	ADD  R5, R4

#define ROW4(from, a, b, c, d) \
	VLD1R (from), [V28.S4]        \
	ADD   R3, from                \
	VFMLA V24.S4, V28.S4, a.S4    \
	VFMLA V25.S4, V28.S4, b.S4    \
	VFMLA V26.S4, V28.S4, c.S4    \
	VFMLA V27.S4, V28.S4, d.S4

#define LOAD1(to) \
	VLD1 (R14), [to.S4] \
	ADD  R15, R14

#define STORE1(from) \
	VST1 [from.S4], (R6) \
	ADD  R7, R6

#define B1 \
	VLD1 (R4), [V24.S4] \
	ADD  R5, R4

#define ROW1(from, to) \
	VLD1R (from), [V28.S4]     \
	ADD   R3, from             \
	VFMLA V24.S4, V28.S4, to.S4

// func tile6x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile6x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD4(V0, V1, V2, V3)
	LOAD4(V4, V5, V6, V7)
	LOAD4(V8, V9, V10, V11)
	LOAD4(V12, V13, V14, V15)
	LOAD4(V16, V17, V18, V19)
	LOAD4(V20, V21, V22, V23)

loop:
	B4
	ROW4(R8, V0, V1, V2, V3)
	ROW4(R9, V4, V5, V6, V7)
	ROW4(R10, V8, V9, V10, V11)
	ROW4(R11, V12, V13, V14, V15)
	ROW4(R12, V16, V17, V18, V19)
	ROW4(R13, V20, V21, V22, V23)
	SUBS $1, R0
	BNE  loop

	STORE4(V0, V1, V2, V3)
	STORE4(V4, V5, V6, V7)
	STORE4(V8, V9, V10, V11)
	STORE4(V12, V13, V14, V15)
	STORE4(V16, V17, V18, V19)
	STORE4(V20, V21, V22, V23)
	RET

// func tile2x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile2x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD4(V0, V1, V2, V3)
	LOAD4(V4, V5, V6, V7)

loop:
	B4
	ROW4(R8, V0, V1, V2, V3)
	ROW4(R9, V4, V5, V6, V7)
	SUBS $1, R0
	BNE  loop

	STORE4(V0, V1, V2, V3)
	STORE4(V4, V5, V6, V7)
	RET

// func tile1x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile1x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD4(V0, V1, V2, V3)

loop:
	B4
	ROW4(R8, V0, V1, V2, V3)
	SUBS $1, R0
	BNE  loop

	STORE4(V0, V1, V2, V3)
	RET

// func tile6x4(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile6x4(SB), NOSPLIT, $0-80
	ARGS
	LOAD1(V0)
	LOAD1(V1)
	LOAD1(V2)
	LOAD1(V3)
	LOAD1(V4)
	LOAD1(V5)

loop:
	B1
	ROW1(R8, V0)
	ROW1(R9, V1)
	ROW1(R10, V2)
	ROW1(R11, V3)
	ROW1(R12, V4)
	ROW1(R13, V5)
	SUBS $1, R0
	BNE  loop

	STORE1(V0)
	STORE1(V1)
	STORE1(V2)
	STORE1(V3)
	STORE1(V4)
	STORE1(V5)
	RET

// func tile1x4(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile1x4(SB), NOSPLIT, $0-80
	ARGS
	LOAD1(V0)

loop:
	B1
	ROW1(R8, V0)
	SUBS $1, R0
	BNE  loop

	STORE1(V0)
	RET
