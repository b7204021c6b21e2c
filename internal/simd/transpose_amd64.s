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

// ROWS8 loads eight rows of a tile with OP: AX and BX point to rows 0 and 4 of src, R9
// is their distance and R10 three times it; DI, SI, R8 and R11 are the same of dst.
#define ROWS8(OP) \
	LEAQ (AX)(R9*4), BX    \
	OP   (AX), X0          \
	OP   (AX)(R9*1), X1    \
	OP   (AX)(R9*2), X2    \
	OP   (AX)(R10*1), X3   \
	OP   (BX), X4          \
	OP   (BX)(R9*1), X5    \
	OP   (BX)(R9*2), X6    \
	OP   (BX)(R10*1), X7   \
	LEAQ (BX)(R9*4), AX

// func transposeHalves(n int, dst *uint16, ds int, src *uint16, ss int)
TEXT ·transposeHalves(SB), NOSPLIT, $0-40
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ ds+16(FP), R8
	MOVQ src+24(FP), AX
	MOVQ ss+32(FP), R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R8)(R8*2), R11
	LEAQ (DI)(R8*4), SI

tile:
	ROWS8(VMOVDQU)
	VPUNPCKLWD  X1, X0, X8
	VPUNPCKHWD  X1, X0, X9
	VPUNPCKLWD  X3, X2, X10
	VPUNPCKHWD  X3, X2, X11
	VPUNPCKLWD  X5, X4, X12
	VPUNPCKHWD  X5, X4, X13
	VPUNPCKLWD  X7, X6, X14
	VPUNPCKHWD  X7, X6, X15
	VPUNPCKLDQ  X10, X8, X0
	VPUNPCKHDQ  X10, X8, X1
	VPUNPCKLDQ  X11, X9, X2
	VPUNPCKHDQ  X11, X9, X3
	VPUNPCKLDQ  X14, X12, X4
	VPUNPCKHDQ  X14, X12, X5
	VPUNPCKLDQ  X15, X13, X6
	VPUNPCKHDQ  X15, X13, X7
	VPUNPCKLQDQ X4, X0, X8
	VPUNPCKHQDQ X4, X0, X9
	VPUNPCKLQDQ X5, X1, X10
	VPUNPCKHQDQ X5, X1, X11
	VPUNPCKLQDQ X6, X2, X12
	VPUNPCKHQDQ X6, X2, X13
	VPUNPCKLQDQ X7, X3, X14
	VPUNPCKHQDQ X7, X3, X15
	VMOVDQU     X8, (DI)
	VMOVDQU     X9, (DI)(R8*1)
	VMOVDQU     X10, (DI)(R8*2)
	VMOVDQU     X11, (DI)(R11*1)
	VMOVDQU     X12, (SI)
	VMOVDQU     X13, (SI)(R8*1)
	VMOVDQU     X14, (SI)(R8*2)
	VMOVDQU     X15, (SI)(R11*1)
	ADDQ        $16, DI
	ADDQ        $16, SI
	DECQ        CX
	JNZ         tile
	RET

// func transposeBytes(n int, dst *uint8, ds int, src *uint8, ss int)
TEXT ·transposeBytes(SB), NOSPLIT, $0-40
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ ds+16(FP), R8
	MOVQ src+24(FP), AX
	MOVQ ss+32(FP), R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R8)(R8*2), R11
	LEAQ (DI)(R8*4), SI

tile:
	ROWS8(VMOVQ)
	VPUNPCKLBW X1, X0, X0
	VPUNPCKLBW X3, X2, X2
	VPUNPCKLBW X5, X4, X4
	VPUNPCKLBW X7, X6, X6
	VPUNPCKLWD X2, X0, X1
	VPUNPCKHWD X2, X0, X3
	VPUNPCKLWD X6, X4, X5
	VPUNPCKHWD X6, X4, X7
	VPUNPCKLDQ X5, X1, X8
	VPUNPCKHDQ X5, X1, X9
	VPUNPCKLDQ X7, X3, X10
	VPUNPCKHDQ X7, X3, X11
	VMOVQ      X8, (DI)
	VMOVHPS    X8, (DI)(R8*1)
	VMOVQ      X9, (DI)(R8*2)
	VMOVHPS    X9, (DI)(R11*1)
	VMOVQ      X10, (SI)
	VMOVHPS    X10, (SI)(R8*1)
	VMOVQ      X11, (SI)(R8*2)
	VMOVHPS    X11, (SI)(R11*1)
	ADDQ       $8, DI
	ADDQ       $8, SI
	DECQ       CX
	JNZ        tile
	RET

// func transposeQuads(n int, dst *uint64, ds int, src *uint64, ss int)
TEXT ·transposeQuads(SB), NOSPLIT, $0-40
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ ds+16(FP), R8
	MOVQ src+24(FP), AX
	MOVQ ss+32(FP), R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R8)(R8*2), R11

tile:
	VMOVUPD    (AX), Y0
	VMOVUPD    (AX)(R9*1), Y1
	VMOVUPD    (AX)(R9*2), Y2
	VMOVUPD    (AX)(R10*1), Y3
	VUNPCKLPD  Y1, Y0, Y4
	VUNPCKHPD  Y1, Y0, Y5
	VUNPCKLPD  Y3, Y2, Y6
	VUNPCKHPD  Y3, Y2, Y7
	VPERM2F128 $0x20, Y6, Y4, Y0
	VPERM2F128 $0x20, Y7, Y5, Y1
	VPERM2F128 $0x31, Y6, Y4, Y2
	VPERM2F128 $0x31, Y7, Y5, Y3
	VMOVUPD    Y0, (DI)
	VMOVUPD    Y1, (DI)(R8*1)
	VMOVUPD    Y2, (DI)(R8*2)
	VMOVUPD    Y3, (DI)(R11*1)
	LEAQ       (AX)(R9*4), AX
	ADDQ       $32, DI
	DECQ       CX
	JNZ        tile
	VZEROUPPER
	RET
