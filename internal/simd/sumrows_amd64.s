//go:build !purego

#include "textflag.h"

// func sumRows8(rows, n int, dst, x *float32, stride int, mask *int32)
//
// Four rows at a time, for AVX2: SI runs along the first, R8 and R9 are two and three
// strides. Y15 is the mask of the last, incomplete block.
TEXT ·sumRows8(SB), NOSPLIT, $0-48
	MOVQ    rows+0(FP), R11
	MOVQ    dst+16(FP), DI
	MOVQ    x+24(FP), R12
	MOVQ    stride+32(FP), DX
	LEAQ    (DX)(DX*1), R8
	LEAQ    (R8)(DX*1), R9
	MOVQ    mask+40(FP), AX
	VMOVUPS (AX), Y15
	VPTEST  Y15, Y15
	SETNE   R13

rows:
	MOVQ   R12, SI
	MOVQ   n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	TESTQ  CX, CX
	JZ     last

block:
	VADDPS (SI), Y0, Y0
	VADDPS (SI)(DX*1), Y1, Y1
	VADDPS (SI)(R8*1), Y2, Y2
	VADDPS (SI)(R9*1), Y3, Y3
	ADDQ   $32, SI
	DECQ   CX
	JNZ    block

last:
	TESTB      R13, R13
	JZ         fold
	VMASKMOVPS (SI), Y15, Y4
	VMASKMOVPS (SI)(DX*1), Y15, Y5
	VMASKMOVPS (SI)(R8*1), Y15, Y6
	VMASKMOVPS (SI)(R9*1), Y15, Y7
	VADDPS     Y4, Y0, Y0
	VADDPS     Y5, Y1, Y1
	VADDPS     Y6, Y2, Y2
	VADDPS     Y7, Y3, Y3

fold:
	VHADDPS      Y1, Y0, Y0
	VHADDPS      Y3, Y2, Y2
	VHADDPS      Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VMOVUPS      X0, (DI)
	ADDQ         $16, DI
	LEAQ         (R12)(DX*4), R12
	SUBQ         $4, R11
	JNZ          rows
	VZEROUPPER
	RET
