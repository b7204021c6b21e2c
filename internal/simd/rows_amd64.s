//go:build !purego

#include "textflag.h"
#include "lanes_amd64.h"
#include "exp_amd64.h"

// Row kernels for AVX2 and FMA, eight elements at a time.

// func tapsWide(n int, y, x *float32, off *int, w *float32, t int)
TEXT ·tapsWide(SB), NOSPLIT, $0-48
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

// func fillLanes(n int, dst *float32, v float32)
TEXT ·fillLanes(SB), NOSPLIT, $0-20
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	VBROADCASTSS v+16(FP), Y0

block:
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	DECQ    CX
	JNZ     block
	VZEROUPPER
	RET

#define FOLD \
	VADDPS       Y1, Y0, Y0     \
	VADDPS       Y3, Y2, Y2     \
	VADDPS       Y2, Y0, Y0     \
	VEXTRACTF128 $1, Y0, X1     \
	VADDPS       X1, X0, X0     \
	VMOVHLPS     X0, X0, X1     \
	VADDPS       X1, X0, X0     \
	VMOVSHDUP    X0, X1         \
	VADDSS       X1, X0, X0

// func dotLanes(n int, x, y *float32) float32
TEXT ·dotLanes(SB), NOSPLIT, $0-28
	MOVQ   n+0(FP), CX
	MOVQ   x+8(FP), SI
	MOVQ   y+16(FP), DI
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

four:
	SUBQ        $4, CX
	JLT         rest
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ        $128, SI
	ADDQ        $128, DI
	JMP         four

rest:
	ADDQ $4, CX
	JZ   done

one:
	VMOVUPS     (SI), Y4
	VFMADD231PS (DI), Y4, Y0
	ADDQ        $32, SI
	ADDQ        $32, DI
	DECQ        CX
	JNZ         one

done:
	FOLD
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func sumLanes(n int, x *float32) float32
TEXT ·sumLanes(SB), NOSPLIT, $0-20
	MOVQ   n+0(FP), CX
	MOVQ   x+8(FP), SI
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

four:
	SUBQ   $4, CX
	JLT    rest
	VADDPS (SI), Y0, Y0
	VADDPS 32(SI), Y1, Y1
	VADDPS 64(SI), Y2, Y2
	VADDPS 96(SI), Y3, Y3
	ADDQ   $128, SI
	JMP    four

rest:
	ADDQ $4, CX
	JZ   done

one:
	VADDPS (SI), Y0, Y0
	ADDQ   $32, SI
	DECQ   CX
	JNZ    one

done:
	FOLD
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

#define SQUARE(at, acc) \
	VMOVUPS     at, Y4       \
	VSUBPS      Y8, Y4, Y4   \
	VFMADD231PS Y4, Y4, acc

// func squaresLanes(n int, x *float32, mean float32) float32
TEXT ·squaresLanes(SB), NOSPLIT, $0-28
	MOVQ         n+0(FP), CX
	MOVQ         x+8(FP), SI
	VBROADCASTSS mean+16(FP), Y8
	VXORPS       Y0, Y0, Y0
	VXORPS       Y1, Y1, Y1
	VXORPS       Y2, Y2, Y2
	VXORPS       Y3, Y3, Y3

four:
	SUBQ $4, CX
	JLT  rest
	SQUARE((SI), Y0)
	SQUARE(32(SI), Y1)
	SQUARE(64(SI), Y2)
	SQUARE(96(SI), Y3)
	ADDQ $128, SI
	JMP  four

rest:
	ADDQ $4, CX
	JZ   done

one:
	SQUARE((SI), Y0)
	ADDQ $32, SI
	DECQ CX
	JNZ  one

done:
	FOLD
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func centerLanes(n int, dst, src *float32, mean, scale float32, weight, bias *float32)
TEXT ·centerLanes(SB), NOSPLIT, $0-48
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	MOVQ         src+16(FP), SI
	VBROADCASTSS mean+24(FP), Y8
	VBROADCASTSS scale+28(FP), Y9
	MOVQ         weight+32(FP), R8
	MOVQ         bias+40(FP), R9
	XORQ         BX, BX

loop:
	VMOVUPS     (SI)(BX*1), Y0
	VSUBPS      Y8, Y0, Y0
	VMULPS      Y9, Y0, Y0
	VMOVUPS     (R9)(BX*1), Y1
	VFMADD132PS (R8)(BX*1), Y1, Y0
	VMOVUPS     Y0, (DI)(BX*1)
	ADDQ        $32, BX
	DECQ        CX
	JNZ         loop
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

// func scaleShiftLanes(n int, dst, src *float32, scale, shift float32)
TEXT ·scaleShiftLanes(SB), NOSPLIT, $0-32
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	MOVQ         src+16(FP), SI
	VBROADCASTSS scale+24(FP), Y8
	VBROADCASTSS shift+28(FP), Y9

four:
	CMPQ        CX, $4
	JLT         one
	VMOVUPS     (SI), Y0
	VMOVUPS     32(SI), Y1
	VMOVUPS     64(SI), Y2
	VMOVUPS     96(SI), Y3
	VFMADD213PS Y9, Y8, Y0
	VFMADD213PS Y9, Y8, Y1
	VFMADD213PS Y9, Y8, Y2
	VFMADD213PS Y9, Y8, Y3
	VMOVUPS     Y0, (DI)
	VMOVUPS     Y1, 32(DI)
	VMOVUPS     Y2, 64(DI)
	VMOVUPS     Y3, 96(DI)
	ADDQ        $128, SI
	ADDQ        $128, DI
	SUBQ        $4, CX
	JMP         four

one:
	TESTQ       CX, CX
	JZ          done
	VMOVUPS     (SI), Y0
	VFMADD213PS Y9, Y8, Y0
	VMOVUPS     Y0, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DI
	DECQ        CX
	JMP         one

done:
	VZEROUPPER
	RET

// EXTREME is the OP of CX blocks from SI on, or NaN: Y1 and Y5 gather the lanes that met
// one, which OP may drop.
#define EXTREME(OP, OPS) \
	VMOVUPS (SI), Y0      \
	VMOVAPS Y0, Y4        \
	VCMPPS  $3, Y0, Y0, Y1 \
	VMOVAPS Y1, Y5        \
	TESTQ   $1, CX        \
	JZ      pairs         \
	ADDQ    $32, SI       \
	DECQ    CX            \
	JZ      fold          \
pairs: \
	VMOVUPS (SI), Y2      \
	VMOVUPS 32(SI), Y6    \
	OP      Y2, Y0, Y0    \
	OP      Y6, Y4, Y4    \
	VCMPPS  $3, Y2, Y2, Y3 \
	VCMPPS  $3, Y6, Y6, Y7 \
	VORPS   Y3, Y1, Y1    \
	VORPS   Y7, Y5, Y5    \
	ADDQ    $64, SI       \
	SUBQ    $2, CX        \
	JNZ     pairs         \
fold: \
	OP      Y4, Y0, Y0    \
	VORPS   Y5, Y1, Y1    \
	VMOVMSKPS    Y1, AX     \
	VEXTRACTF128 $1, Y0, X1 \
	OP           X1, X0, X0 \
	VMOVHLPS     X0, X0, X1 \
	OP           X1, X0, X0 \
	VMOVSHDUP    X0, X1     \
	OPS          X1, X0, X0 \
	TESTL        AX, AX     \
	JZ           finite     \
	MOVL         $0x7fc00000, AX \
	VMOVD        AX, X0     \
finite: \
	VZEROUPPER

// func maxLanes(n int, x *float32) float32
TEXT ·maxLanes(SB), NOSPLIT, $0-20
	MOVQ   n+0(FP), CX
	MOVQ   x+8(FP), SI
	EXTREME(VMAXPS, VMAXSS)
	VMOVSS X0, ret+16(FP)
	RET

// func minLanes(n int, x *float32) float32
TEXT ·minLanes(SB), NOSPLIT, $0-20
	MOVQ   n+0(FP), CX
	MOVQ   x+8(FP), SI
	EXTREME(VMINPS, VMINSS)
	VMOVSS X0, ret+16(FP)
	RET

// func expLanes(n int, dst, src *float32)
TEXT ·expLanes(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI

loop:
	VMOVUPS (SI), Y0
	EXP(expMin)
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VZEROUPPER
	RET

// func expSumLanes(n int, dst, src *float32, shift float32) float32
TEXT ·expSumLanes(SB), NOSPLIT, $0-36
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	MOVQ         src+16(FP), SI
	VBROADCASTSS shift+24(FP), Y8
	VXORPS       Y9, Y9, Y9

loop:
	VMOVUPS (SI), Y0
	VSUBPS  Y8, Y0, Y0
	EXP(expNormal)
	VMOVUPS Y0, (DI)
	VADDPS  Y0, Y9, Y9
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop

	VEXTRACTF128 $1, Y9, X1
	VADDPS       X1, X9, X0
	VMOVHLPS     X0, X0, X1
	VADDPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VADDSS       X1, X0, X0
	VMOVSS       X0, ret+32(FP)
	VZEROUPPER
	RET

// func copyRows8(rows int, dst, src *float32, n, ds, ss int, mask *int32)
//
// n whole blocks of eight for each row, then what the mask leaves on; ds and ss are
// in bytes.
TEXT ·copyRows8(SB), NOSPLIT, $0-56
	MOVQ    rows+0(FP), CX
	MOVQ    dst+8(FP), DI
	MOVQ    src+16(FP), SI
	MOVQ    n+24(FP), R8
	MOVQ    ds+32(FP), R9
	MOVQ    ss+40(FP), R10
	MOVQ    mask+48(FP), AX
	VMOVUPS (AX), Y15
	SHLQ    $5, R8

row:
	XORQ BX, BX
	JMP  test

block:
	VMOVUPS (SI)(BX*1), Y0
	VMOVUPS Y0, (DI)(BX*1)
	ADDQ    $32, BX

test:
	CMPQ       BX, R8
	JLT        block
	VMASKMOVPS (SI)(BX*1), Y15, Y0
	VMASKMOVPS Y0, Y15, (DI)(BX*1)
	ADDQ       R9, DI
	ADDQ       R10, SI
	DECQ       CX
	JNZ        row
	VZEROUPPER
	RET
