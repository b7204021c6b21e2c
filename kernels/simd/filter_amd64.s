//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// A filter over a plane for AVX-512: 16 columns of one row of the result at a time.
// Masks say which lanes of a tap lie inside the plane; those outside are not read,
// whatever their address is. R8 points to the block's masks, SI to what the first tap
// of its first row reads, DI to its first row of the result; BX and R14 are SI and
// the row's number in the plane, row by row; R9, R15 and DX are those of the tap's
// row and its weight. R10 is the plane's row in bytes, R11 the taps of a kernel row,
// R12 the bytes between them, R13 those from the end of one kernel row to the next.

#define TAP(at, mask) \
	VBROADCASTSS at(DX), Z1         \
	VFMADD231PS  (R9), Z1, mask, Z0 \
	ADDQ         R12, R9

// func filter512(f *Filter, masks *uint16, y, x, w *float32, bias float32)
TEXT ·filter512(SB), NOSPLIT, $56-44
	MOVQ         f+0(FP), AX
	MOVQ         masks+8(FP), R8
	MOVQ         y+16(FP), DI
	MOVQ         x+24(FP), SI
	VBROADCASTSS bias+40(FP), Z31

	MOVQ  Filter_InCols(AX), R10
	SHLQ  $2, R10
	MOVQ  Filter_Top(AX), R9
	IMULQ R10, R9
	SUBQ  R9, SI
	MOVQ  Filter_Left(AX), R9
	SHLQ  $2, R9
	SUBQ  R9, SI
	MOVQ  Filter_KernelCols(AX), R11
	MOVQ  Filter_DilateCols(AX), R12
	SHLQ  $2, R12
	MOVQ  Filter_DilateRows(AX), R13
	MOVQ  R13, dilate-8(SP)
	IMULQ R10, R13
	MOVQ  R13, step-16(SP)
	MOVQ  R11, R9
	IMULQ R12, R9
	SUBQ  R9, R13
	MOVQ  Filter_InRows(AX), R9
	MOVQ  R9, height-24(SP)
	MOVQ  Filter_Cols(AX), R9
	ADDQ  $15, R9
	SHRQ  $4, R9
	MOVQ  R9, blocks-32(SP)

block:
	KMOVW (R8)(R11*2), K2
	KMOVW (R8), K3
	KMOVW 2(R8), K4
	KMOVW 4(R8), K5
	MOVQ  f+0(FP), AX
	MOVQ  Filter_Rows(AX), R9
	MOVQ  R9, rows-40(SP)
	MOVQ  DI, result-48(SP)
	MOVQ  SI, BX
	MOVQ  Filter_Top(AX), R14
	NEGQ  R14

row:
	VMOVAPS Z31, Z0
	MOVQ    f+0(FP), AX
	MOVQ    Filter_KernelRows(AX), AX
	MOVQ    w+32(FP), DX
	MOVQ    BX, R9
	MOVQ    R14, R15

kernelRow:
	CMPQ R15, height-24(SP)
	JCC  outside
	CMPQ R11, $3
	JEQ  three
	XORQ CX, CX

tap:
	VBROADCASTSS (DX)(CX*4), Z1
	KMOVW        (R8)(CX*2), K1
	VFMADD231PS  (R9), Z1, K1, Z0
	ADDQ         R12, R9
	INCQ         CX
	CMPQ         CX, R11
	JLT          tap
	ADDQ         R13, R9
	JMP          next

three:
	TAP(0, K3)
	TAP(4, K4)
	TAP(8, K5)
	ADDQ R13, R9
	JMP  next

outside:
	ADDQ step-16(SP), R9

next:
	LEAQ (DX)(R11*4), DX
	ADDQ dilate-8(SP), R15
	DECQ AX
	JNZ  kernelRow

	MOVQ    result-48(SP), CX
	VMOVUPS Z0, K2, (CX)
	MOVQ    f+0(FP), AX
	MOVQ    Filter_Cols(AX), AX
	LEAQ    (CX)(AX*4), CX
	MOVQ    CX, result-48(SP)
	ADDQ    R10, BX
	INCQ    R14
	DECQ    rows-40(SP)
	JNZ     row

	ADDQ $64, SI
	ADDQ $64, DI
	LEAQ 2(R8)(R11*2), R8
	DECQ blocks-32(SP)
	JNZ  block
	VZEROUPPER
	RET
