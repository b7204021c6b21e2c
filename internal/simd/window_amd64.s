//go:build !purego

#include "textflag.h"

// Rows of windows, for AVX2: DI and SI run along a row of y and of x, R10 counts its
// blocks of eight; R8 are the offsets of the taps and BX counts them. Y15 is the mask
// of the last, incomplete block.

// func sumTaps8(rows, n int, y, x *float32, off *int, taps, ys, xs int, mask *int32)
TEXT ·sumTaps8(SB), NOSPLIT, $0-72
	MOVQ    y+16(FP), R11
	MOVQ    x+24(FP), R12
	MOVQ    off+32(FP), R8
	MOVQ    taps+40(FP), R9
	MOVQ    mask+64(FP), AX
	VMOVUPS (AX), Y15
	VPTEST  Y15, Y15
	SETNE   R13

row:
	MOVQ R11, DI
	MOVQ R12, SI
	MOVQ n+8(FP), R10

four:
	CMPQ    R10, $4
	JLT     one
	MOVQ    (R8), AX
	VMOVUPS (SI)(AX*4), Y0
	VMOVUPS 32(SI)(AX*4), Y1
	VMOVUPS 64(SI)(AX*4), Y2
	VMOVUPS 96(SI)(AX*4), Y3
	MOVQ    $1, BX
	JMP     fourTest

fourTap:
	MOVQ   (R8)(BX*8), AX
	VADDPS (SI)(AX*4), Y0, Y0
	VADDPS 32(SI)(AX*4), Y1, Y1
	VADDPS 64(SI)(AX*4), Y2, Y2
	VADDPS 96(SI)(AX*4), Y3, Y3
	INCQ   BX

fourTest:
	CMPQ    BX, R9
	JLT     fourTap
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    $128, DI
	ADDQ    $128, SI
	SUBQ    $4, R10
	JMP     four

one:
	TESTQ   R10, R10
	JZ      last
	MOVQ    (R8), AX
	VMOVUPS (SI)(AX*4), Y0
	MOVQ    $1, BX
	JMP     oneTest

oneTap:
	MOVQ   (R8)(BX*8), AX
	VADDPS (SI)(AX*4), Y0, Y0
	INCQ   BX

oneTest:
	CMPQ    BX, R9
	JLT     oneTap
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	DECQ    R10
	JMP     one

last:
	TESTB      R13, R13
	JZ         next
	MOVQ       (R8), AX
	VMASKMOVPS (SI)(AX*4), Y15, Y0
	MOVQ       $1, BX
	JMP        lastTest

lastTap:
	MOVQ       (R8)(BX*8), AX
	VMASKMOVPS (SI)(AX*4), Y15, Y1
	VADDPS     Y1, Y0, Y0
	INCQ       BX

lastTest:
	CMPQ       BX, R9
	JLT        lastTap
	VMASKMOVPS Y0, Y15, (DI)

next:
	ADDQ ys+48(FP), R11
	ADDQ xs+56(FP), R12
	DECQ rows+0(FP)
	JNZ  row
	VZEROUPPER
	RET

// TAKE takes the elements of Y9 over into best, and the tag Y8 into at, where they are
// greater or NaN.
#define TAKE(best, at) \
	VCMPPS    $0x1e, best, Y9, Y10  \
	VCMPPS    $3, Y9, Y9, Y11       \
	VORPS     Y11, Y10, Y10         \
	VBLENDVPS Y10, Y9, best, best   \
	VBLENDVPS Y10, Y8, at, at

// func maxTaps8(rows, n int, y *float32, at *int32, x *float32, off *int, tag *int32, taps, ys, xs int, mask *int32, signs uint32)
//
// Y14 turns the signs around where the least element is wanted.
TEXT ·maxTaps8(SB), NOSPLIT, $0-92
	MOVQ    y+16(FP), R11
	MOVQ    at+24(FP), DX
	SUBQ    R11, DX             // at lies DX bytes behind y
	MOVQ    x+32(FP), R12
	MOVQ    off+40(FP), R8
	MOVQ    tag+48(FP), CX
	MOVQ    taps+56(FP), R9
	MOVQ    mask+80(FP), AX
	VMOVUPS (AX), Y15
	VBROADCASTSS signs+88(FP), Y14
	VPTEST  Y15, Y15
	SETNE   R13

row:
	MOVQ R11, DI
	MOVQ R12, SI
	MOVQ n+8(FP), R10

four:
	CMPQ         R10, $4
	JLT          one
	MOVQ         (R8), AX
	VXORPS       (SI)(AX*4), Y14, Y0
	VXORPS       32(SI)(AX*4), Y14, Y1
	VXORPS       64(SI)(AX*4), Y14, Y2
	VXORPS       96(SI)(AX*4), Y14, Y3
	VBROADCASTSS (CX), Y4
	VMOVAPS      Y4, Y5
	VMOVAPS      Y4, Y6
	VMOVAPS      Y4, Y7
	MOVQ         $1, BX
	JMP          fourTest

fourTap:
	MOVQ         (R8)(BX*8), AX
	VBROADCASTSS (CX)(BX*4), Y8
	VXORPS       (SI)(AX*4), Y14, Y9
	TAKE(Y0, Y4)
	VXORPS       32(SI)(AX*4), Y14, Y9
	TAKE(Y1, Y5)
	VXORPS       64(SI)(AX*4), Y14, Y9
	TAKE(Y2, Y6)
	VXORPS       96(SI)(AX*4), Y14, Y9
	TAKE(Y3, Y7)
	INCQ         BX

fourTest:
	CMPQ    BX, R9
	JLT     fourTap
	VXORPS  Y0, Y14, Y0
	VXORPS  Y1, Y14, Y1
	VXORPS  Y2, Y14, Y2
	VXORPS  Y3, Y14, Y3
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, (DI)(DX*1)
	VMOVUPS Y5, 32(DI)(DX*1)
	VMOVUPS Y6, 64(DI)(DX*1)
	VMOVUPS Y7, 96(DI)(DX*1)
	ADDQ    $128, DI
	ADDQ    $128, SI
	SUBQ    $4, R10
	JMP     four

one:
	TESTQ        R10, R10
	JZ           last
	MOVQ         (R8), AX
	VXORPS       (SI)(AX*4), Y14, Y0
	VBROADCASTSS (CX), Y4
	MOVQ         $1, BX
	JMP          oneTest

oneTap:
	MOVQ         (R8)(BX*8), AX
	VBROADCASTSS (CX)(BX*4), Y8
	VXORPS       (SI)(AX*4), Y14, Y9
	TAKE(Y0, Y4)
	INCQ         BX

oneTest:
	CMPQ    BX, R9
	JLT     oneTap
	VXORPS  Y0, Y14, Y0
	VMOVUPS Y0, (DI)
	VMOVUPS Y4, (DI)(DX*1)
	ADDQ    $32, DI
	ADDQ    $32, SI
	DECQ    R10
	JMP     one

last:
	TESTB        R13, R13
	JZ           next
	MOVQ         (R8), AX
	VMASKMOVPS   (SI)(AX*4), Y15, Y0
	VXORPS       Y0, Y14, Y0
	VBROADCASTSS (CX), Y4
	MOVQ         $1, BX
	JMP          lastTest

lastTap:
	MOVQ         (R8)(BX*8), AX
	VBROADCASTSS (CX)(BX*4), Y8
	VMASKMOVPS   (SI)(AX*4), Y15, Y9
	VXORPS       Y9, Y14, Y9
	TAKE(Y0, Y4)
	INCQ         BX

lastTest:
	CMPQ       BX, R9
	JLT        lastTap
	VXORPS     Y0, Y14, Y0
	VMASKMOVPS Y0, Y15, (DI)
	VMASKMOVPS Y4, Y15, (DI)(DX*1)

next:
	ADDQ ys+64(FP), R11
	ADDQ xs+72(FP), R12
	DECQ rows+0(FP)
	JNZ  row
	VZEROUPPER
	RET
