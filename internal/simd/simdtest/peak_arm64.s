//go:build !purego

#include "textflag.h"

// Fused multiply-adds of registers, none of which waits for another.
#define ZERO(x) VEOR x.B16, x.B16, x.B16
#define ADD(x) VFMLA V30.S4, V31.S4, x.S4

// func peak4(n int)
TEXT ·peak4(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3); ZERO(V4); ZERO(V5)
	ZERO(V6); ZERO(V7); ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11)
	ZERO(V12); ZERO(V13); ZERO(V14); ZERO(V15); ZERO(V16); ZERO(V17)
	ZERO(V18); ZERO(V19); ZERO(V20); ZERO(V21); ZERO(V22); ZERO(V23)
	ZERO(V30); ZERO(V31)
	PCALIGN $64

loop:
	ADD(V0); ADD(V1); ADD(V2); ADD(V3); ADD(V4); ADD(V5)
	ADD(V6); ADD(V7); ADD(V8); ADD(V9); ADD(V10); ADD(V11)
	ADD(V12); ADD(V13); ADD(V14); ADD(V15); ADD(V16); ADD(V17)
	ADD(V18); ADD(V19); ADD(V20); ADD(V21); ADD(V22); ADD(V23)
	SUBS $1, R0
	BNE loop
	RET
