// Loops over n blocks of eight elements.

// BINARY runs OP, which makes Y0 = f(Y0, Y1), over n blocks of two operands.
#define BINARY(OP) \
	MOVQ n+0(FP), CX    \
	MOVQ dst+8(FP), DI  \
	MOVQ a+16(FP), SI   \
	MOVQ b+24(FP), DX   \
	XORQ AX, AX         \
loop:                       \
	VMOVUPS (SI)(AX*1), Y0 \
	VMOVUPS (DX)(AX*1), Y1 \
	OP                     \
	VMOVUPS Y0, (DI)(AX*1) \
	ADDQ    $32, AX        \
	DECQ    CX             \
	JNZ     loop           \
	VZEROUPPER             \
	RET

// UNARY runs OP, which makes Y0 = f(Y0), over n blocks.
#define UNARY(OP) \
	MOVQ n+0(FP), CX    \
	MOVQ dst+8(FP), DI  \
	MOVQ src+16(FP), SI \
	XORQ AX, AX         \
loop:                       \
	VMOVUPS (SI)(AX*1), Y0 \
	OP                     \
	VMOVUPS Y0, (DI)(AX*1) \
	ADDQ    $32, AX        \
	DECQ    CX             \
	JNZ     loop           \
	VZEROUPPER             \
	RET

// COMPARE runs OP, which makes Y0 the mask f(Y0, Y1), over n blocks of two operands,
// and stores answers: 1 where the mask is set for AS VPAND, where it is not for VPANDN.
// AX counts elements.
#define COMPARE(OP, AS) \
	MOVQ n+0(FP), CX   \
	MOVQ dst+8(FP), DI \
	MOVQ a+16(FP), SI  \
	MOVQ b+24(FP), DX  \
	XORQ AX, AX        \
	MOVQ $0x0101010101010101, BX \
	MOVQ BX, X15       \
loop:                      \
	VMOVUPS (SI)(AX*4), Y0   \
	VMOVUPS (DX)(AX*4), Y1   \
	OP                       \
	VEXTRACTI128 $1, Y0, X1  \
	VPACKSSDW X1, X0, X0     \
	VPACKSSWB X0, X0, X0     \
	AS      X15, X0, X0      \
	VMOVQ   X0, (DI)(AX*1)   \
	ADDQ    $8, AX           \
	DECQ    CX               \
	JNZ     loop             \
	VZEROUPPER               \
	RET
