//go:build !purego

#include "textflag.h"

// LOAD brings elements at off of rows 0 to 3 of a tile into the low halves of four
// registers, of rows 4 to 7 into the high halves. AX and BX point to the two sets of
// rows, R9 is their distance and R10 three times it.
#define LOAD(off, a, b, c, d, ax, bx, cx, dx) \
	VMOVUPS     off(AX), ax              \
	VMOVUPS     off(AX)(R9*1), bx        \
	VMOVUPS     off(AX)(R9*2), cx        \
	VMOVUPS     off(AX)(R10*1), dx       \
	VINSERTF128 $1, off(BX), a, a        \
	VINSERTF128 $1, off(BX)(R9*1), b, b  \
	VINSERTF128 $1, off(BX)(R9*2), c, c  \
	VINSERTF128 $1, off(BX)(R10*1), d, d

// STORE writes four columns of what LOAD brought as rows: to is the first of them, R8
// their distance and R11 three times it.
#define STORE(to, a, b, c, d) \
	VUNPCKLPS b, a, Y8          \
	VUNPCKHPS b, a, Y9          \
	VUNPCKLPS d, c, Y10         \
	VUNPCKHPS d, c, Y11         \
	VUNPCKLPD Y10, Y8, Y12      \
	VUNPCKHPD Y10, Y8, Y13      \
	VUNPCKLPD Y11, Y9, Y14      \
	VUNPCKHPD Y11, Y9, Y15      \
	VMOVUPS   Y12, (to)         \
	VMOVUPS   Y13, (to)(R8*1)   \
	VMOVUPS   Y14, (to)(R8*2)   \
	VMOVUPS   Y15, (to)(R11*1)

// func transposeLanes(n int, dst *uint32, ds int, src *uint32, ss int)
//
// n tiles of 8×8, one below the other in src and side by side in dst. Strides are in
// bytes.
TEXT ·transposeLanes(SB), NOSPLIT, $0-40
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ ds+16(FP), R8
	MOVQ src+24(FP), AX
	MOVQ ss+32(FP), R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R8)(R8*2), R11
	LEAQ (DI)(R8*4), SI

tile:
	LEAQ (AX)(R9*4), BX
	LOAD(0, Y0, Y1, Y2, Y3, X0, X1, X2, X3)
	LOAD(16, Y4, Y5, Y6, Y7, X4, X5, X6, X7)
	STORE(DI, Y0, Y1, Y2, Y3)
	STORE(SI, Y4, Y5, Y6, Y7)
	LEAQ (BX)(R9*4), AX
	ADDQ $32, DI
	ADDQ $32, SI
	DECQ CX
	JNZ  tile
	VZEROUPPER
	RET
