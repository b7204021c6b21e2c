//go:build !purego

#include "textflag.h"

// Tiles of a matrix product, for AVX2 and FMA. Each adds Σ_p a[i,p]·b[p,j] to a tile
// of from, held in registers: two (16 columns) or one (8 columns, masked) for each
// row, and stores it to c. SI and BX point to rows 0 and 3 of a, R8 is the row stride
// of a, R9 its column stride; DI and R10 are b and its row stride, AX and R13 the same
// of from, DX and R11 of c; CX counts p. Strides are in bytes.

#define ARGS \
	MOVQ k+0(FP), CX    \
	MOVQ a+8(FP), SI    \
	MOVQ ars+16(FP), R8 \
	MOVQ acs+24(FP), R9 \
	MOVQ b+32(FP), DI   \
	MOVQ ldb+40(FP), R10 \
	MOVQ c+64(FP), DX   \
	MOVQ ldc+72(FP), R11 \
	LEAQ (R8)(R8*2), BX \
	ADDQ SI, BX         \
	MOVQ from+48(FP), AX \
	MOVQ ldf+56(FP), R13

#define LOAD2(lo, hi) \
	VMOVUPS (AX), lo   \
	VMOVUPS 32(AX), hi \
	ADDQ    R13, AX

#define STORE2(lo, hi) \
	VMOVUPS lo, (DX)   \
	VMOVUPS hi, 32(DX) \
	ADDQ    R11, DX

#define ROW2(from, lo, hi) \
	VBROADCASTSS from, Y14      \
	VFMADD231PS  Y12, Y14, lo   \
	VFMADD231PS  Y13, Y14, hi

#define B2 \
	VMOVUPS (DI), Y12   \
	VMOVUPS 32(DI), Y13 \
	ADDQ    R10, DI

#define MASK \
	MOVQ    mask+80(FP), R12 \
	VMOVUPS (R12), Y15

#define LOAD1(to) \
	VMASKMOVPS (AX), Y15, to \
	ADDQ       R13, AX

#define STORE1(from) \
	VMASKMOVPS from, Y15, (DX) \
	ADDQ       R11, DX

#define ROW1(from, to) \
	VBROADCASTSS from, Y14    \
	VFMADD231PS  Y12, Y14, to

#define B1 \
	VMASKMOVPS (DI), Y15, Y12 \
	ADDQ       R10, DI

// func tile6x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile6x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD2(Y0, Y1)
	LOAD2(Y2, Y3)
	LOAD2(Y4, Y5)
	LOAD2(Y6, Y7)
	LOAD2(Y8, Y9)
	LOAD2(Y10, Y11)

loop:
	B2
	ROW2((SI), Y0, Y1)
	ROW2((SI)(R8*1), Y2, Y3)
	ROW2((SI)(R8*2), Y4, Y5)
	ADDQ R9, SI
	ROW2((BX), Y6, Y7)
	ROW2((BX)(R8*1), Y8, Y9)
	ROW2((BX)(R8*2), Y10, Y11)
	ADDQ R9, BX
	DECQ CX
	JNZ  loop

	STORE2(Y0, Y1)
	STORE2(Y2, Y3)
	STORE2(Y4, Y5)
	STORE2(Y6, Y7)
	STORE2(Y8, Y9)
	STORE2(Y10, Y11)
	VZEROUPPER
	RET

// func tile4x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile4x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD2(Y0, Y1)
	LOAD2(Y2, Y3)
	LOAD2(Y4, Y5)
	LOAD2(Y6, Y7)

loop:
	B2
	ROW2((SI), Y0, Y1)
	ROW2((SI)(R8*1), Y2, Y3)
	ROW2((SI)(R8*2), Y4, Y5)
	ADDQ R9, SI
	ROW2((BX), Y6, Y7)
	ADDQ R9, BX
	DECQ CX
	JNZ  loop

	STORE2(Y0, Y1)
	STORE2(Y2, Y3)
	STORE2(Y4, Y5)
	STORE2(Y6, Y7)
	VZEROUPPER
	RET

// func tile2x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile2x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD2(Y0, Y1)
	LOAD2(Y2, Y3)

loop:
	B2
	ROW2((SI), Y0, Y1)
	ROW2((SI)(R8*1), Y2, Y3)
	ADDQ R9, SI
	DECQ CX
	JNZ  loop

	STORE2(Y0, Y1)
	STORE2(Y2, Y3)
	VZEROUPPER
	RET

// func tile1x16(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile1x16(SB), NOSPLIT, $0-80
	ARGS
	LOAD2(Y0, Y1)

loop:
	B2
	ROW2((SI), Y0, Y1)
	ADDQ R9, SI
	DECQ CX
	JNZ  loop

	STORE2(Y0, Y1)
	VZEROUPPER
	RET

// func tile1x64(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int)
TEXT ·tile1x64(SB), NOSPLIT, $0-80
	ARGS
	VMOVUPS (AX), Y0
	VMOVUPS 32(AX), Y1
	VMOVUPS 64(AX), Y2
	VMOVUPS 96(AX), Y3
	VMOVUPS 128(AX), Y4
	VMOVUPS 160(AX), Y5
	VMOVUPS 192(AX), Y6
	VMOVUPS 224(AX), Y7

loop:
	VBROADCASTSS (SI), Y14
	VFMADD231PS  (DI), Y14, Y0
	VFMADD231PS  32(DI), Y14, Y1
	VFMADD231PS  64(DI), Y14, Y2
	VFMADD231PS  96(DI), Y14, Y3
	VFMADD231PS  128(DI), Y14, Y4
	VFMADD231PS  160(DI), Y14, Y5
	VFMADD231PS  192(DI), Y14, Y6
	VFMADD231PS  224(DI), Y14, Y7
	ADDQ         R9, SI
	ADDQ         R10, DI
	DECQ         CX
	JNZ          loop

	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
	VMOVUPS Y2, 64(DX)
	VMOVUPS Y3, 96(DX)
	VMOVUPS Y4, 128(DX)
	VMOVUPS Y5, 160(DX)
	VMOVUPS Y6, 192(DX)
	VMOVUPS Y7, 224(DX)
	VZEROUPPER
	RET

// func tile6x8(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, mask *int32)
TEXT ·tile6x8(SB), NOSPLIT, $0-88
	ARGS
	MASK
	LOAD1(Y0)
	LOAD1(Y1)
	LOAD1(Y2)
	LOAD1(Y3)
	LOAD1(Y4)
	LOAD1(Y5)

loop:
	B1
	ROW1((SI), Y0)
	ROW1((SI)(R8*1), Y1)
	ROW1((SI)(R8*2), Y2)
	ADDQ R9, SI
	ROW1((BX), Y3)
	ROW1((BX)(R8*1), Y4)
	ROW1((BX)(R8*2), Y5)
	ADDQ R9, BX
	DECQ CX
	JNZ  loop

	STORE1(Y0)
	STORE1(Y1)
	STORE1(Y2)
	STORE1(Y3)
	STORE1(Y4)
	STORE1(Y5)
	VZEROUPPER
	RET

// func tile2x8(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, mask *int32)
TEXT ·tile2x8(SB), NOSPLIT, $0-88
	ARGS
	MASK
	LOAD1(Y0)
	LOAD1(Y1)

loop:
	B1
	ROW1((SI), Y0)
	ROW1((SI)(R8*1), Y1)
	ADDQ R9, SI
	DECQ CX
	JNZ  loop

	STORE1(Y0)
	STORE1(Y1)
	VZEROUPPER
	RET

// func tile1x8(k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, mask *int32)
TEXT ·tile1x8(SB), NOSPLIT, $0-88
	ARGS
	MASK
	LOAD1(Y0)

loop:
	B1
	ROW1((SI), Y0)
	ADDQ R9, SI
	DECQ CX
	JNZ  loop

	STORE1(Y0)
	VZEROUPPER
	RET
