//go:build !purego

#include "textflag.h"

// Sums of float32 in float64, for AVX2 and FMA.

// FOLD2 adds up the lanes of y, whose low half is x, into x. It clobbers X15.
#define FOLD2(x, y) \
	VEXTRACTF128 $1, y, X15  \
	VADDPD       X15, x, x   \
	VUNPCKHPD    x, x, X15   \
	VADDSD       X15, x, x

// func sumSquaresFloat64x8(n int, x *float32, mean float64) (sum, squares float64)
TEXT ·sumSquaresFloat64x8(SB), NOSPLIT, $0-40
	MOVQ         n+0(FP), CX
	MOVQ         x+8(FP), SI
	VBROADCASTSD mean+16(FP), Y8
	VXORPD       Y0, Y0, Y0
	VXORPD       Y1, Y1, Y1
	VXORPD       Y2, Y2, Y2
	VXORPD       Y3, Y3, Y3

loop:
	VCVTPS2PD   (SI), Y4
	VCVTPS2PD   16(SI), Y5
	VSUBPD      Y8, Y4, Y4
	VSUBPD      Y8, Y5, Y5
	VADDPD      Y4, Y0, Y0
	VADDPD      Y5, Y1, Y1
	VFMADD231PD Y4, Y4, Y2
	VFMADD231PD Y5, Y5, Y3
	ADDQ        $32, SI
	DECQ        CX
	JNZ         loop
	VADDPD      Y1, Y0, Y0
	VADDPD      Y3, Y2, Y2
	FOLD2(X0, Y0)
	FOLD2(X2, Y2)
	VMOVSD      X0, sum+24(FP)
	VMOVSD      X2, squares+32(FP)
	VZEROUPPER
	RET

// func addFloat64x8(n int, sums *float64, x *float32)
TEXT ·addFloat64x8(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ sums+8(FP), DI
	MOVQ x+16(FP), SI

loop:
	VCVTPS2PD (SI), Y0
	VCVTPS2PD 16(SI), Y1
	VADDPD    (DI), Y0, Y0
	VADDPD    32(DI), Y1, Y1
	VMOVUPD   Y0, (DI)
	VMOVUPD   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET

// func addSquaresFloat64x8(n int, sums *float64, x *float32, mean *float64)
TEXT ·addSquaresFloat64x8(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ sums+8(FP), DI
	MOVQ x+16(FP), SI
	MOVQ mean+24(FP), DX

loop:
	VCVTPS2PD   (SI), Y0
	VCVTPS2PD   16(SI), Y1
	VSUBPD      (DX), Y0, Y0
	VSUBPD      32(DX), Y1, Y1
	VMOVUPD     (DI), Y2
	VMOVUPD     32(DI), Y3
	VFMADD231PD Y0, Y0, Y2
	VFMADD231PD Y1, Y1, Y3
	VMOVUPD     Y2, (DI)
	VMOVUPD     Y3, 32(DI)
	ADDQ        $32, SI
	ADDQ        $64, DI
	ADDQ        $64, DX
	DECQ        CX
	JNZ         loop
	VZEROUPPER
	RET

// func cumSumx4(n int, dst, src *float32) (sum float64)
//
// Y8 is the sum of all blocks before; no block waits for more than its addition.
TEXT ·cumSumx4(SB), NOSPLIT, $0-32
	MOVQ   n+0(FP), CX
	MOVQ   dst+8(FP), DI
	MOVQ   src+16(FP), SI
	VXORPD Y8, Y8, Y8
	VXORPD Y9, Y9, Y9

loop:
	VCVTPS2PD  (SI), Y0
	VUNPCKLPD  Y0, Y9, Y1           // 0, a, 0, c
	VADDPD     Y1, Y0, Y0           // a, a+b, c, c+d
	VPERMPD    $0x55, Y0, Y1
	VBLENDPD   $0x0c, Y1, Y9, Y1    // 0, 0, a+b, a+b
	VADDPD     Y1, Y0, Y0
	VPERMPD    $0xff, Y0, Y2
	VADDPD     Y8, Y0, Y0
	VADDPD     Y2, Y8, Y8
	VCVTPD2PSY Y0, X0
	VMOVUPS    X0, (DI)
	ADDQ       $16, SI
	ADDQ       $16, DI
	DECQ       CX
	JNZ        loop
	VMOVSD     X8, sum+24(FP)
	VZEROUPPER
	RET
