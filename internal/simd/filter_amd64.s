//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Numbers of the lanes that a stride of 2 takes from two vectors.
DATA evens<>+0(SB)/8, $0x0000000200000000
DATA evens<>+8(SB)/8, $0x0000000600000004
DATA evens<>+16(SB)/8, $0x0000000a00000008
DATA evens<>+24(SB)/8, $0x0000000e0000000c
DATA evens<>+32(SB)/8, $0x0000001200000010
DATA evens<>+40(SB)/8, $0x0000001600000014
DATA evens<>+48(SB)/8, $0x0000001a00000018
DATA evens<>+56(SB)/8, $0x0000001e0000001c
GLOBL evens<>(SB), RODATA|NOPTR, $64

// A filter over a plane for AVX-512: 16 columns of one row of the result at a time.
// Masks say which lanes of a tap lie inside the plane; those outside are not read,
// whatever their address is. R8 points to the block's masks, SI to what the first tap
// of its first row reads, DI to its first row of the result; BX and R14 are SI and
// the row's number in the plane, row by row; R9, R15 and DX are those of the tap's
// row and its weight. R10 is the plane's row in bytes, R11 the taps of a kernel row,
// R12 the bytes between them, R13 those from the end of one kernel row to the next.
// Rows that a kernel of 3x3 finds whole have its weights in Z16 to Z24.

#define TAP(at, mask) \
	VBROADCASTSS at(DX), Z1         \
	VFMADD231PS  (R9), Z1, mask, Z0 \
	ADDQ         R12, R9

#define WEIGHTS(at, w0, w1, w2) \
	VBROADCASTSS at(DX), w0   \
	VBROADCASTSS at+4(DX), w1 \
	VBROADCASTSS at+8(DX), w2

// func filter512(f *Filter, masks *uint16, y, x, w *float32, bias float32)
TEXT ·filter512(SB), NOSPLIT, $80-44
	MOVQ         f+0(FP), AX
	MOVQ         masks+8(FP), R8
	MOVQ         y+16(FP), DI
	MOVQ         x+24(FP), SI
	VBROADCASTSS bias+40(FP), Z31
	VMOVUPS      evens<>(SB), Z30

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
	MOVQ  Filter_Stride(AX), R9
	MOVQ  R9, stride-56(SP)
	IMULQ R11, R9
	MOVQ  R9, last-64(SP)

	MOVQ    $0, whole-72(SP)
	CMPQ    Filter_KernelRows(AX), $3
	JNE     block
	CMPQ    R11, $3
	JNE     block
	CMPQ    Filter_DilateRows(AX), $1
	JNE     block
	CMPQ    R12, $4
	JNE     block
	CMPQ    Filter_Stride(AX), $1
	JNE     block
	MOVQ    height-24(SP), R9
	SUBQ    $2, R9
	JLE     block
	MOVQ    R9, whole-72(SP)
	MOVQ    w+32(FP), DX
	WEIGHTS(0, Z16, Z17, Z18)
	WEIGHTS(12, Z19, Z20, Z21)
	WEIGHTS(24, Z22, Z23, Z24)

block:
	MOVQ  last-64(SP), R9
	KMOVW (R8)(R9*2), K2
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
	CMPQ    R14, whole-72(SP)
	JCC     part

	VPXORQ      Z4, Z4, Z4
	VPXORQ      Z5, Z5, Z5
	VFMADD231PS (BX), Z16, K3, Z0
	VFMADD231PS 4(BX), Z17, K4, Z4
	VFMADD231PS 8(BX), Z18, K5, Z5
	VFMADD231PS (BX)(R10*1), Z19, K3, Z0
	VFMADD231PS 4(BX)(R10*1), Z20, K4, Z4
	VFMADD231PS 8(BX)(R10*1), Z21, K5, Z5
	VFMADD231PS (BX)(R10*2), Z22, K3, Z0
	VFMADD231PS 4(BX)(R10*2), Z23, K4, Z4
	VFMADD231PS 8(BX)(R10*2), Z24, K5, Z5
	VADDPS      Z5, Z4, Z4
	VADDPS      Z4, Z0, Z0
	JMP         done

part:
	MOVQ    f+0(FP), AX
	MOVQ    Filter_KernelRows(AX), AX
	MOVQ    w+32(FP), DX
	MOVQ    BX, R9
	MOVQ    R14, R15

kernelRow:
	CMPQ R15, height-24(SP)
	JCC  outside
	XORQ CX, CX
	CMPQ stride-56(SP), $2
	JEQ  second
	CMPQ R11, $3
	JEQ  three

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

second:
	VBROADCASTSS (DX)(CX*4), Z1
	KMOVW        (R8)(CX*4), K1
	KMOVW        2(R8)(CX*4), K6
	VMOVUPS.Z    (R9), K1, Z2
	VMOVUPS.Z    64(R9), K6, Z3
	VPERMT2PS    Z3, Z30, Z2
	VFMADD231PS  Z2, Z1, Z0
	ADDQ         R12, R9
	INCQ         CX
	CMPQ         CX, R11
	JLT          second
	ADDQ         R13, R9
	JMP          next

outside:
	ADDQ step-16(SP), R9

next:
	LEAQ (DX)(R11*4), DX
	ADDQ dilate-8(SP), R15
	DECQ AX
	JNZ  kernelRow

done:
	MOVQ    result-48(SP), CX
	VMOVUPS Z0, K2, (CX)
	MOVQ    f+0(FP), AX
	MOVQ    Filter_Cols(AX), AX
	LEAQ    (CX)(AX*4), CX
	MOVQ    CX, result-48(SP)
	MOVQ    stride-56(SP), AX
	ADDQ    AX, R14
	IMULQ   R10, AX
	ADDQ    AX, BX
	DECQ    rows-40(SP)
	JNZ     row

	MOVQ stride-56(SP), AX
	SHLQ $6, AX
	ADDQ AX, SI
	ADDQ $64, DI
	MOVQ last-64(SP), AX
	LEAQ 2(R8)(AX*2), R8
	DECQ blocks-32(SP)
	JNZ  block
	VZEROUPPER
	RET
