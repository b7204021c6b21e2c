package graph

// Tags of node types in a payload's union XNodeUnion.
const (
	TagAdd                  = 1
	TagFullyConnected       = 2
	TagSoftmax              = 3
	TagSigmoid              = 4
	TagStaticTranspose      = 5
	TagClamp                = 6
	TagConv2d               = 7
	TagDiv                  = 8
	TagResizeBilinear2D     = 9
	TagStaticConstantPad    = 10
	TagAvgPooling2d         = 11
	TagMinimum              = 12
	TagDepthwiseConv2d      = 13
	TagMaxPooling2d         = 14
	TagMultiply             = 15
	TagSubtract             = 16
	TagFloor                = 17
	TagConvert              = 18
	TagGlobalAvgPooling2d   = 19
	TagStaticReshape        = 20
	TagArgMaxPooling2d      = 21
	TagSquareRoot           = 22
	TagCeiling              = 23
	TagHardswish            = 24
	TagLeakyReLU            = 25
	TagMaximum              = 26
	TagNegate               = 27
	TagSquare               = 28
	TagELU                  = 29
	TagAbs                  = 30
	TagPReLU                = 31
	TagConcatenate2         = 32
	TagConcatenate3         = 33
	TagConcatenate4         = 34
	TagStaticSlice          = 35
	TagBatchMatrixMultiply  = 37
	TagConcatenate5         = 38
	TagConvTranspose2d      = 39
	TagReciprocalSquareRoot = 40
	TagLog                  = 41
	TagGelu                 = 42
	TagTanh                 = 43
	TagExp                  = 44
	TagSin                  = 45
	TagCopy                 = 46
	TagCos                  = 47
)

// Tags of the node types that only the Go engine has. Payloads have none of them.
const (
	TagSiLU = 252 + iota
	TagTable
	TagRearrange
	TagResizePlanes
)
