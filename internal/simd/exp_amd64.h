// EXP makes Y0 = e^Y0, 0 below least. It clobbers Y1 to Y6.
#define EXP(least) \
	VMOVAPS     Y0, Y6                  \
	VMULPS      log2e<>(SB), Y0, Y1     \
	VROUNDPS    $0, Y1, Y1              \
	VMOVAPS     Y1, Y2                  \
	VFNMADD231PS ln2Hi<>(SB), Y1, Y0    \
	VFNMADD231PS ln2Lo<>(SB), Y1, Y0    \
	VMOVUPS     expP0<>(SB), Y3         \
	VFMADD213PS expP1<>(SB), Y0, Y3     \
	VFMADD213PS expP2<>(SB), Y0, Y3     \
	VFMADD213PS expP3<>(SB), Y0, Y3     \
	VFMADD213PS expP4<>(SB), Y0, Y3     \
	VFMADD213PS expP5<>(SB), Y0, Y3     \
	VMULPS      Y0, Y0, Y4              \
	VADDPS      one<>(SB), Y0, Y0       \
	VFMADD231PS Y4, Y3, Y0              \
	VCVTPS2DQ   Y2, Y2                  \
	VPSRAD      $1, Y2, Y3              \
	VPSUBD      Y3, Y2, Y2              \
	VPADDD      bias<>(SB), Y2, Y2      \
	VPADDD      bias<>(SB), Y3, Y3      \
	VPSLLD      $23, Y2, Y2             \
	VPSLLD      $23, Y3, Y3             \
	VMULPS      Y3, Y0, Y0              \
	VMULPS      Y2, Y0, Y0              \
	VCMPPS      $1, least<>(SB), Y6, Y2 \
	VANDNPS     Y0, Y2, Y0              \
	VCMPPS      $6, expMax<>(SB), Y6, Y2 \
	VMULPS      infinity<>(SB), Y6, Y3  \
	VBLENDVPS   Y2, Y3, Y0, Y0
