//go:build !purego

#include "textflag.h"

// Row kernels for AVX2 and FMA, eight elements at a time.

// func tapsBlocks(n int, y, x *float32, off *int, w *float32, t int)
TEXT ·tapsBlocks(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ y+8(FP), DI
	MOVQ x+16(FP), SI
	MOVQ off+24(FP), R8
	MOVQ w+32(FP), R9
	MOVQ t+40(FP), R10

block:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS 128(DI), Y4
	VMOVUPS 160(DI), Y5
	VMOVUPS 192(DI), Y6
	VMOVUPS 224(DI), Y7
	XORQ    BX, BX

tap:
	MOVQ         (R8)(BX*8), AX
	VBROADCASTSS (R9)(BX*4), Y8
	LEAQ         (SI)(AX*4), AX
	VFMADD231PS  (AX), Y8, Y0
	VFMADD231PS  32(AX), Y8, Y1
	VFMADD231PS  64(AX), Y8, Y2
	VFMADD231PS  96(AX), Y8, Y3
	VFMADD231PS  128(AX), Y8, Y4
	VFMADD231PS  160(AX), Y8, Y5
	VFMADD231PS  192(AX), Y8, Y6
	VFMADD231PS  224(AX), Y8, Y7
	INCQ         BX
	CMPQ         BX, R10
	JLT          tap

	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ    $256, DI
	ADDQ    $256, SI
	DECQ    CX
	JNZ     block
	VZEROUPPER
	RET

// func tapsLanes(n int, y, x *float32, off *int, w *float32, t int)
TEXT ·tapsLanes(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ y+8(FP), DI
	MOVQ x+16(FP), SI
	MOVQ off+24(FP), R8
	MOVQ w+32(FP), R9
	MOVQ t+40(FP), R10

block:
	VMOVUPS (DI), Y0
	XORQ    BX, BX

tap:
	MOVQ         (R8)(BX*8), AX
	VBROADCASTSS (R9)(BX*4), Y8
	VFMADD231PS  (SI)(AX*4), Y8, Y0
	INCQ         BX
	CMPQ         BX, R10
	JLT          tap

	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	DECQ    CX
	JNZ     block
	VZEROUPPER
	RET

// func everySecond(n int, dst, src *float32)
TEXT ·everySecond(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI

loop:
	VMOVUPS (SI), Y0
	VSHUFPS $0x88, 32(SI), Y0, Y0
	VPERMPD $0xd8, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $64, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VZEROUPPER
	RET
