// Constants, each in eight lanes; those of the exponential first.

#define LANES(name, bits) \
	DATA name<>+0(SB)/4, $bits  \
	DATA name<>+4(SB)/4, $bits  \
	DATA name<>+8(SB)/4, $bits  \
	DATA name<>+12(SB)/4, $bits \
	DATA name<>+16(SB)/4, $bits \
	DATA name<>+20(SB)/4, $bits \
	DATA name<>+24(SB)/4, $bits \
	DATA name<>+28(SB)/4, $bits \
	GLOBL name<>(SB), RODATA|NOPTR, $32

LANES(expMax, 0x42b17218)
LANES(expMin, 0xc2cff1b5)
LANES(expNormal, 0xc2aeac4f)
LANES(log2e, 0x3fb8aa3b)
LANES(ln2Hi, 0x3f318000)
LANES(ln2Lo, 0xb95e8083)
LANES(expP0, 0x39506967)
LANES(expP1, 0x3ab743ce)
LANES(expP2, 0x3c088908)
LANES(expP3, 0x3d2aa9c1)
LANES(expP4, 0x3e2aaaaa)
LANES(expP5, 0x3f000000)
LANES(one, 0x3f800000)
LANES(bias, 0x0000007f)
LANES(infinity, 0x7f800000)
LANES(signBit, 0x80000000)
