//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"

// Conversions of 16-bit floats for AVX2 and F16C, eight at a time.

// func halfToFloatLanes(n int, dst *float32, src *uint16)
TEXT ·halfToFloatLanes(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI

loop:
	VCVTPH2PS (SI), Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET

// func floatToHalfLanes(n int, dst *uint16, src *float32)
TEXT ·floatToHalfLanes(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI

loop:
	VMOVUPS   (SI), Y0
	VCVTPS2PH $0, Y0, (DI)
	ADDQ      $32, SI
	ADDQ      $16, DI
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET

// func bfloatToFloatLanes(n int, dst *float32, src *uint16)
TEXT ·bfloatToFloatLanes(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI

loop:
	VPMOVZXWD (SI), Y0
	VPSLLD    $16, Y0, Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET

LANES(quiet, 0x00007fc0)
LANES(almostHalf, 0x00007fff)
LANES(lowBit, 0x00000001)

// func floatToBFloatLanes(n int, dst *uint16, src *float32)
//
// Half of the last place that stays, less one where that place is even, rounds by its
// carry.
TEXT ·floatToBFloatLanes(SB), NOSPLIT, $0-24
	MOVQ    n+0(FP), CX
	MOVQ    dst+8(FP), DI
	MOVQ    src+16(FP), SI
	VMOVUPS quiet<>(SB), Y5
	VMOVUPS almostHalf<>(SB), Y6
	VMOVUPS lowBit<>(SB), Y7

loop:
	VMOVUPS      (SI), Y0
	VCMPPS       $3, Y0, Y0, Y1
	VPSRLD       $16, Y0, Y2
	VPAND        Y7, Y2, Y2
	VPADDD       Y6, Y0, Y0
	VPADDD       Y2, Y0, Y0
	VPSRLD       $16, Y0, Y0
	VBLENDVPS    Y1, Y5, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW    X1, X0, X0
	VMOVDQU      X0, (DI)
	ADDQ         $32, SI
	ADDQ         $16, DI
	DECQ         CX
	JNZ          loop
	VZEROUPPER
	RET
