// Instructions that the assembler does not know are words: OP Vd.4S, Vn.4S, Vm.4S with
// the numbers of the registers.

#define FADD(d, n, m) WORD $(0x4E20D400 | m<<16 | n<<5 | d)
#define FSUB(d, n, m) WORD $(0x4EA0D400 | m<<16 | n<<5 | d)
#define FMUL(d, n, m) WORD $(0x6E20DC00 | m<<16 | n<<5 | d)
#define FDIV(d, n, m) WORD $(0x6E20FC00 | m<<16 | n<<5 | d)
#define FMAX(d, n, m) WORD $(0x4E20F400 | m<<16 | n<<5 | d)
#define FMIN(d, n, m) WORD $(0x4EA0F400 | m<<16 | n<<5 | d)
#define FSQRT(d, n) WORD $(0x6EA1F800 | n<<5 | d)
#define FNEG(d, n) WORD $(0x6EA0F800 | n<<5 | d)
#define FABS(d, n) WORD $(0x4EA0F800 | n<<5 | d)
#define CMLT0(d, n) WORD $(0x4EA0A800 | n<<5 | d)
#define BIT(d, n, m) WORD $(0x6EA01C00 | m<<16 | n<<5 | d)
#define FRINTN(d, n) WORD $(0x4E218800 | n<<5 | d)
#define FCVTNS(d, n) WORD $(0x4E21A800 | n<<5 | d)
#define FRINTM(d, n) WORD $(0x4E219800 | n<<5 | d)
#define FRINTP(d, n) WORD $(0x4EA18800 | n<<5 | d)
#define FRINTZ(d, n) WORD $(0x4EA19800 | n<<5 | d)
#define FCMEQ(d, n, m) WORD $(0x4E20E400 | m<<16 | n<<5 | d)
#define FCMGE(d, n, m) WORD $(0x6E20E400 | m<<16 | n<<5 | d)
#define FCMGT(d, n, m) WORD $(0x6EA0E400 | m<<16 | n<<5 | d)
#define FCMEQ0(d, n) WORD $(0x4EA0D800 | n<<5 | d)
#define FCMGE0(d, n) WORD $(0x6EA0C800 | n<<5 | d)
#define SCVTF(d, n) WORD $(0x4E21D800 | n<<5 | d)
#define SSHR23(d, n) WORD $(0x4F290400 | n<<5 | d)
#define FCMGT0(d, n) WORD $(0x4EA0C800 | n<<5 | d)
#define FCMLT0(d, n) WORD $(0x4EA0E800 | n<<5 | d)
#define CMEQ(d, n, m) WORD $(0x6EA08C00 | m<<16 | n<<5 | d)
#define CMEQ0(d, n) WORD $(0x4EA09800 | n<<5 | d)
#define CMGT(d, n, m) WORD $(0x4EA03400 | m<<16 | n<<5 | d)
#define CMGE(d, n, m) WORD $(0x4EA03C00 | m<<16 | n<<5 | d)
#define SMAX(d, n, m) WORD $(0x4EA06400 | m<<16 | n<<5 | d)
#define SMIN(d, n, m) WORD $(0x4EA06C00 | m<<16 | n<<5 | d)
#define MUL32(d, n, m) WORD $(0x4EA09C00 | m<<16 | n<<5 | d)
#define ABS32(d, n) WORD $(0x4EA0B800 | n<<5 | d)
#define NEG32(d, n) WORD $(0x6EA0B800 | n<<5 | d)
#define NOT(d, n) WORD $(0x6E205800 | n<<5 | d)
#define BSL(d, n, m) WORD $(0x6E601C00 | m<<16 | n<<5 | d)
#define XTN16(d, n) WORD $(0x0E612800 | n<<5 | d)
#define XTN8(d, n) WORD $(0x0E212800 | n<<5 | d)

// Loops over n blocks of four elements.

// BINARY runs OP, which makes V0 = f(V0, V1), over n blocks of two operands.
#define BINARY(OP) \
	MOVD n+0(FP), R0   \
	MOVD dst+8(FP), R1 \
	MOVD a+16(FP), R2  \
	MOVD b+24(FP), R3  \
loop:                      \
	VLD1.P 16(R2), [V0.S4] \
	VLD1.P 16(R3), [V1.S4] \
	OP                     \
	VST1.P [V0.S4], 16(R1) \
	SUBS   $1, R0          \
	BNE    loop            \
	RET

// UNARY runs OP, which makes V0 = f(V0), over n blocks.
#define UNARY(OP) \
	MOVD n+0(FP), R0    \
	MOVD dst+8(FP), R1  \
	MOVD src+16(FP), R2 \
loop:                       \
	VLD1.P 16(R2), [V0.S4] \
	OP                     \
	VST1.P [V0.S4], 16(R1) \
	SUBS   $1, R0          \
	BNE    loop            \
	RET

// COMPARE runs OP, which makes V0 the mask f(V0, V1), over n blocks of two operands,
// and stores answers: 1 where the mask is set.
#define COMPARE(OP) \
	MOVD n+0(FP), R0   \
	MOVD dst+8(FP), R1 \
	MOVD a+16(FP), R2  \
	MOVD b+24(FP), R3  \
loop:                      \
	VLD1.P  16(R2), [V0.S4]  \
	VLD1.P  16(R3), [V1.S4]  \
	OP                       \
	VUSHR   $31, V0.S4, V0.S4 \
	XTN16(0, 0)              \
	XTN8(0, 0)               \
	FMOVS.P F0, 4(R1)        \
	SUBS    $1, R0           \
	BNE     loop             \
	RET
