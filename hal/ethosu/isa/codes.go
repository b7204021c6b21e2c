package isa

// Code is a command's number: bits 9:0 of its first word, and Wide for the commands
// of two words (cmd1).
type Code uint16

// Wide marks commands that have a second word, the payload.
const Wide Code = 1 << 15

// Operations (NPU_OP_*), which start work with the current register values.
const (
	OpStop        Code = 0x0
	OpIRQ         Code = 0x1
	OpConv        Code = 0x2
	OpDepthwise   Code = 0x3
	OpPool        Code = 0x5
	OpElementwise Code = 0x6
	OpResize      Code = 0x7
	OpDMAStart    Code = 0x10
	OpDMAWait     Code = 0x11
	OpKernelWait  Code = 0x12
	OpPMUMask     Code = 0x13
	OpBranch      Code = Wide | 0x100
)

// Registers of 16 bits (NPU_SET_*, cmd0).
const (
	IFMPadTop       Code = 0x100
	IFMPadLeft      Code = 0x101
	IFMPadRight     Code = 0x102
	IFMPadBottom    Code = 0x103
	IFMDepthM1      Code = 0x104
	IFMPrecision    Code = 0x105
	IFMUpscale      Code = 0x107
	IFMBroadcast    Code = 0x108
	IFMZeroPoint    Code = 0x109
	IFMWidth0M1     Code = 0x10a
	IFMHeight0M1    Code = 0x10b
	IFMHeight1M1    Code = 0x10c
	IFMIBEnd        Code = 0x10d
	IFMRegion       Code = 0x10f
	OFMWidthM1      Code = 0x111
	OFMHeightM1     Code = 0x112
	OFMDepthM1      Code = 0x113
	OFMPrecision    Code = 0x114
	OFMBlkWidthM1   Code = 0x115
	OFMBlkHeightM1  Code = 0x116
	OFMBlkDepthM1   Code = 0x117
	OFMZeroPoint    Code = 0x118
	OFMWidth0M1     Code = 0x11a
	OFMHeight0M1    Code = 0x11b
	OFMHeight1M1    Code = 0x11c
	OFMRegion       Code = 0x11f
	KernelWidthM1   Code = 0x120
	KernelHeightM1  Code = 0x121
	KernelStride    Code = 0x122
	ParallelMode    Code = 0x123
	AccFormat       Code = 0x124
	Activation      Code = 0x125
	ActivationMin   Code = 0x126
	ActivationMax   Code = 0x127
	WeightRegion    Code = 0x128
	ScaleRegion     Code = 0x129
	ResizeXScaleNM1 Code = 0x12a
	ResizeYScaleNM1 Code = 0x12b
	ResizeXOffset   Code = 0x12c
	ABStart         Code = 0x12d
	ResizeYOffset   Code = 0x12d
	WeightFormat    Code = 0x12e
	Blockdep        Code = 0x12f
	DMA0SrcRegion   Code = 0x130
	DMA0DstRegion   Code = 0x131
	DMA0Size0       Code = 0x132
	DMA0Size1       Code = 0x133
	DMA0IdxRegion   Code = 0x134
	IFM2Broadcast   Code = 0x180
	IFM2Scalar      Code = 0x181
	IFM2Precision   Code = 0x185
	IFM2ZeroPoint   Code = 0x189
	IFM2Width0M1    Code = 0x18a
	IFM2Height0M1   Code = 0x18b
	IFM2Height1M1   Code = 0x18c
	IFM2IBStart     Code = 0x18d
	IFM2Region      Code = 0x18f
)

// Registers of up to 48 bits (NPU_SET_*, cmd1). Numbers 0x92 and 0x93 differ by family.
const (
	IFMBase0       Code = Wide
	IFMBase1       Code = Wide | 0x1
	IFMBase2       Code = Wide | 0x2
	IFMBase3       Code = Wide | 0x3
	IFMStrideX     Code = Wide | 0x4
	IFMStrideY     Code = Wide | 0x5
	IFMStrideC     Code = Wide | 0x6
	OFMBase0       Code = Wide | 0x10
	OFMBase1       Code = Wide | 0x11
	OFMBase2       Code = Wide | 0x12
	OFMBase3       Code = Wide | 0x13
	OFMStrideX     Code = Wide | 0x14
	OFMStrideY     Code = Wide | 0x15
	OFMStrideC     Code = Wide | 0x16
	WeightBase     Code = Wide | 0x20
	WeightLength   Code = Wide | 0x21
	ScaleBase      Code = Wide | 0x22
	ScaleLength    Code = Wide | 0x23
	OFMScale       Code = Wide | 0x24
	IFMScale       Code = Wide | 0x25
	OPAScale       Code = Wide | 0x25
	IFM2Scale      Code = Wide | 0x26
	OPBScale       Code = Wide | 0x26
	OPScalar       Code = Wide | 0x27
	DMA0Src        Code = Wide | 0x30
	DMA0Dst        Code = Wide | 0x31
	DMA0Len        Code = Wide | 0x32
	DMA0Skip0      Code = Wide | 0x33
	DMA0SrcStride0 Code = Wide | 0x33
	DMA0Skip1      Code = Wide | 0x34
	DMA0SrcStride1 Code = Wide | 0x34
	DMA0DstStride0 Code = Wide | 0x35
	DMA0DstStride1 Code = Wide | 0x36
	DMA0Idx        Code = Wide | 0x37
	DMA0IdxMax     Code = Wide | 0x38
	DMA0IdxSkip1   Code = Wide | 0x39
	IFM2Base0      Code = Wide | 0x80
	IFM2Base1      Code = Wide | 0x81
	IFM2Base2      Code = Wide | 0x82
	IFM2Base3      Code = Wide | 0x83
	IFM2StrideX    Code = Wide | 0x84
	IFM2StrideY    Code = Wide | 0x85
	IFM2StrideC    Code = Wide | 0x86
	Weight1Base    Code = Wide | 0x90
	Weight1Length  Code = Wide | 0x91
	Scale1Base     Code = Wide | 0x92
	Weight2Base    Code = Wide | 0x92
	Scale1Length   Code = Wide | 0x93
	Weight2Length  Code = Wide | 0x93
	Weight3Base    Code = Wide | 0x94
	Weight3Length  Code = Wide | 0x95
	ResizeX        Code = Wide | 0x96
	ResizeY        Code = Wide | 0x97
)
