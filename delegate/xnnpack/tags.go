package xnnpack

// Tags of node types in a payload's union XNodeUnion.
const (
	tagAdd                  = 1
	tagFullyConnected       = 2
	tagSoftmax              = 3
	tagSigmoid              = 4
	tagStaticTranspose      = 5
	tagClamp                = 6
	tagConv2d               = 7
	tagDiv                  = 8
	tagResizeBilinear2D     = 9
	tagStaticConstantPad    = 10
	tagAvgPooling2d         = 11
	tagMinimum              = 12
	tagDepthwiseConv2d      = 13
	tagMaxPooling2d         = 14
	tagMultiply             = 15
	tagSubtract             = 16
	tagFloor                = 17
	tagConvert              = 18
	tagGlobalAvgPooling2d   = 19
	tagStaticReshape        = 20
	tagArgMaxPooling2d      = 21
	tagSquareRoot           = 22
	tagCeiling              = 23
	tagHardswish            = 24
	tagLeakyReLU            = 25
	tagMaximum              = 26
	tagNegate               = 27
	tagSquare               = 28
	tagELU                  = 29
	tagAbs                  = 30
	tagPReLU                = 31
	tagConcatenate2         = 32
	tagConcatenate3         = 33
	tagConcatenate4         = 34
	tagStaticSlice          = 35
	tagBatchMatrixMultiply  = 37
	tagConcatenate5         = 38
	tagConvTranspose2d      = 39
	tagReciprocalSquareRoot = 40
	tagLog                  = 41
	tagGelu                 = 42
	tagTanh                 = 43
	tagExp                  = 44
	tagSin                  = 45
	tagCopy                 = 46
	tagCos                  = 47
)

// Tags of the node types that only the Go engine has. Payloads have none of them.
const (
	tagSiLU = 252 + iota
	tagTable
	tagRearrange
	tagResizePlanes
)
