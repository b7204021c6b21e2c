//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"
#include "exp_amd64.h"

// Norms of whole rows, for AVX2 and FMA: n blocks of eight elements for each row, then
// those that the mask in Y15 leaves on. DI and SI are the rows of dst and src, R9 is
// their distance and R8 the length of the blocks, both in bytes; BX runs along a row.

// ACROSS makes every lane of x the OP of all of them. It clobbers Y1.
#define ACROSS(OP, x) \
	VPERM2F128 $0x01, x, x, Y1 \
	OP         Y1, x, x        \
	VPERMILPS  $0x4e, x, Y1    \
	OP         Y1, x, x        \
	VPERMILPS  $0xb1, x, Y1    \
	OP         Y1, x, x

// func softmaxRows8(rows, n int, dst, src *float32, stride int, mask *int32)
TEXT ·softmaxRows8(SB), NOSPLIT, $0-48
	MOVQ     rows+0(FP), CX
	MOVQ     n+8(FP), R8
	MOVQ     dst+16(FP), DI
	MOVQ     src+24(FP), SI
	MOVQ     stride+32(FP), R9
	MOVQ     mask+40(FP), AX
	VMOVUPS  (AX), Y15
	SHLQ     $5, R8
	VMOVUPS  infinity<>(SB), Y14
	VXORPS   signBit<>(SB), Y14, Y14

row: // Y8 becomes the largest element, Y7 gathers lanes that met a NaN
	VMASKMOVPS (SI)(R8*1), Y15, Y0
	VBLENDVPS  Y15, Y0, Y14, Y8
	VCMPPS     $3, Y8, Y8, Y7
	XORQ       BX, BX
	JMP        maxTest

max:
	VMOVUPS (SI)(BX*1), Y0
	VMAXPS  Y0, Y8, Y8
	VCMPPS  $3, Y0, Y0, Y1
	VORPS   Y1, Y7, Y7
	ADDQ    $32, BX

maxTest:
	CMPQ      BX, R8
	JLT       max
	ACROSS(VMAXPS, Y8)
	VMOVMSKPS Y7, AX
	TESTL     AX, AX
	JZ        begin
	VPCMPEQD  Y8, Y8, Y8

begin:
	VXORPS Y9, Y9, Y9
	XORQ   BX, BX
	JMP    expTest

exp:
	VMOVUPS (SI)(BX*1), Y0
	VSUBPS  Y8, Y0, Y0
	EXP(expNormal)
	VMOVUPS Y0, (DI)(BX*1)
	VADDPS  Y0, Y9, Y9
	ADDQ    $32, BX

expTest:
	CMPQ       BX, R8
	JLT        exp
	VMASKMOVPS (SI)(R8*1), Y15, Y0
	VSUBPS     Y8, Y0, Y0
	EXP(expNormal)
	VMASKMOVPS Y0, Y15, (DI)(R8*1)
	VANDPS     Y15, Y0, Y0
	VADDPS     Y0, Y9, Y9
	ACROSS(VADDPS, Y9)
	VMOVUPS    one<>(SB), Y1
	VDIVPS     Y9, Y1, Y9
	XORQ       BX, BX
	JMP        scaleTest

scale:
	VMULPS  (DI)(BX*1), Y9, Y0
	VMOVUPS Y0, (DI)(BX*1)
	ADDQ    $32, BX

scaleTest:
	CMPQ       BX, R8
	JLT        scale
	VMASKMOVPS (DI)(R8*1), Y15, Y0
	VMULPS     Y9, Y0, Y0
	VMASKMOVPS Y0, Y15, (DI)(R8*1)
	ADDQ       R9, DI
	ADDQ       R9, SI
	DECQ       CX
	JNZ        row
	VZEROUPPER
	RET

// func normRows8(rows, n int, dst, src *float32, stride int, mask *int32, weight, bias, mean, rstd *float32, size, eps float32)
TEXT ·normRows8(SB), NOSPLIT, $0-88
	MOVQ         rows+0(FP), CX
	MOVQ         n+8(FP), R8
	MOVQ         dst+16(FP), DI
	MOVQ         src+24(FP), SI
	MOVQ         stride+32(FP), R9
	MOVQ         mask+40(FP), AX
	VMOVUPS      (AX), Y15
	MOVQ         weight+48(FP), R10
	MOVQ         bias+56(FP), R11
	MOVQ         mean+64(FP), R12
	MOVQ         rstd+72(FP), R13
	VBROADCASTSS size+80(FP), Y14
	VBROADCASTSS eps+84(FP), Y13
	SHLQ         $5, R8

row: // Y8 becomes the mean
	VMASKMOVPS (SI)(R8*1), Y15, Y8
	XORQ       BX, BX
	JMP        sumTest

sum:
	VADDPS (SI)(BX*1), Y8, Y8
	ADDQ   $32, BX

sumTest:
	CMPQ   BX, R8
	JLT    sum
	ACROSS(VADDPS, Y8)
	VDIVPS Y14, Y8, Y8
	VMOVSS X8, (R12)

	// Y9 becomes 1/sqrt(variance + eps)
	VMASKMOVPS (SI)(R8*1), Y15, Y0
	VSUBPS     Y8, Y0, Y0
	VANDPS     Y15, Y0, Y0
	VMULPS     Y0, Y0, Y9
	XORQ       BX, BX
	JMP        squareTest

square:
	VMOVUPS     (SI)(BX*1), Y0
	VSUBPS      Y8, Y0, Y0
	VFMADD231PS Y0, Y0, Y9
	ADDQ        $32, BX

squareTest:
	CMPQ    BX, R8
	JLT     square
	ACROSS(VADDPS, Y9)
	VDIVPS  Y14, Y9, Y9
	VADDPS  Y13, Y9, Y9
	VSQRTPS Y9, Y9
	VMOVUPS one<>(SB), Y1
	VDIVPS  Y9, Y1, Y9
	VMOVSS  X9, (R13)
	XORQ    BX, BX
	JMP     centerTest

center:
	VMOVUPS     (SI)(BX*1), Y0
	VSUBPS      Y8, Y0, Y0
	VMULPS      Y9, Y0, Y0
	VMOVUPS     (R11)(BX*1), Y1
	VFMADD132PS (R10)(BX*1), Y1, Y0
	VMOVUPS     Y0, (DI)(BX*1)
	ADDQ        $32, BX

centerTest:
	CMPQ        BX, R8
	JLT         center
	VMASKMOVPS  (SI)(R8*1), Y15, Y0
	VSUBPS      Y8, Y0, Y0
	VMULPS      Y9, Y0, Y0
	VMASKMOVPS  (R10)(R8*1), Y15, Y2
	VMASKMOVPS  (R11)(R8*1), Y15, Y1
	VFMADD132PS Y2, Y1, Y0
	VMASKMOVPS  Y0, Y15, (DI)(R8*1)
	ADDQ        R9, DI
	ADDQ        R9, SI
	ADDQ        $4, R12
	ADDQ        $4, R13
	DECQ        CX
	JNZ         row
	VZEROUPPER
	RET
