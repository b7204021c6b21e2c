//go:build !purego

#include "textflag.h"

// Tiles of a matrix product for AVX-512: up to 32 columns, in two registers for each
// row. The masks K1 and K2 say which of them there are, so one tile serves every
// width. Registers are those of the AVX2 tiles; R13 points to
// row 6 of a, and R14 is the row stride of from.

#define ARGS \
	MOVQ  k+0(FP), CX     \
	MOVQ  a+8(FP), SI     \
	MOVQ  ars+16(FP), R8  \
	MOVQ  acs+24(FP), R9  \
	MOVQ  b+32(FP), DI    \
	MOVQ  ldb+40(FP), R10 \
	MOVQ  c+64(FP), DX    \
	MOVQ  ldc+72(FP), R11 \
	MOVL  cols+80(FP), AX \
	KMOVW AX, K1          \
	SHRL  $16, AX         \
	KMOVW AX, K2          \
	LEAQ  (R8)(R8*2), R12 \
	LEAQ  (SI)(R12*1), BX \
	LEAQ  (BX)(R12*1), R13 \
	MOVQ  from+48(FP), AX \
	MOVQ  ldf+56(FP), R14

#define LOAD(lo, hi) \
	VMOVUPS.Z (AX), K1, lo   \
	VMOVUPS.Z 64(AX), K2, hi \
	ADDQ      R14, AX

#define STORE(lo, hi) \
	VMOVUPS lo, K1, (DX)   \
	VMOVUPS hi, K2, 64(DX) \
	ADDQ    R11, DX

#define B \
	VMOVUPS.Z (DI), K1, Z24   \
	VMOVUPS.Z 64(DI), K2, Z25 \
	ADDQ      R10, DI

#define ROW(from, bcast, lo, hi) \
	VBROADCASTSS from, bcast     \
	VFMADD231PS  Z24, bcast, lo  \
	VFMADD231PS  Z25, bcast, hi

// func tile8x32(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, cols uint32)
TEXT ·tile8x32(SB), NOSPLIT, $0-84
	ARGS
	LOAD(Z0, Z1)
	LOAD(Z2, Z3)
	LOAD(Z4, Z5)
	LOAD(Z6, Z7)
	LOAD(Z8, Z9)
	LOAD(Z10, Z11)
	LOAD(Z12, Z13)
	LOAD(Z14, Z15)

loop:
	B
	ROW((SI), Z26, Z0, Z1)
	ROW((SI)(R8*1), Z27, Z2, Z3)
	ROW((SI)(R8*2), Z28, Z4, Z5)
	ADDQ R9, SI
	ROW((BX), Z29, Z6, Z7)
	ROW((BX)(R8*1), Z30, Z8, Z9)
	ROW((BX)(R8*2), Z31, Z10, Z11)
	ADDQ R9, BX
	ROW((R13), Z26, Z12, Z13)
	ROW((R13)(R8*1), Z27, Z14, Z15)
	ADDQ R9, R13
	DECQ CX
	JNZ  loop

	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
	STORE(Z8, Z9)
	STORE(Z10, Z11)
	STORE(Z12, Z13)
	STORE(Z14, Z15)
	VZEROUPPER
	RET

// func tile4x32(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, cols uint32)
TEXT ·tile4x32(SB), NOSPLIT, $0-84
	ARGS
	LOAD(Z0, Z1)
	LOAD(Z2, Z3)
	LOAD(Z4, Z5)
	LOAD(Z6, Z7)

loop:
	B
	ROW((SI), Z26, Z0, Z1)
	ROW((SI)(R8*1), Z27, Z2, Z3)
	ROW((SI)(R8*2), Z28, Z4, Z5)
	ADDQ R9, SI
	ROW((BX), Z29, Z6, Z7)
	ADDQ R9, BX
	DECQ CX
	JNZ  loop

	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
	VZEROUPPER
	RET

// func tile1x32(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, cols uint32)
TEXT ·tile1x32(SB), NOSPLIT, $0-84
	ARGS
	LOAD(Z0, Z1)

loop:
	B
	ROW((SI), Z26, Z0, Z1)
	ADDQ R9, SI
	DECQ CX
	JNZ  loop

	STORE(Z0, Z1)
	VZEROUPPER
	RET
