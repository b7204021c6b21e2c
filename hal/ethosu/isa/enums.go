package isa

// Enum contains the names of a field's values.
type Enum []string

var (
	accFormatU65           = Enum{0: "I32", 1: "I40", 2: "F16"}
	accFormatU85           = Enum{0: "I32", 1: "I48"}
	accInput               = Enum{0: "RESET", 1: "KEEP", 2: "IFM2"}
	accOutput              = Enum{0: "ENABLE", 1: "DISABLE"}
	activationClipRangeU65 = Enum{0: "OFM_PRECISION", 2: "FORCE_UINT8", 3: "FORCE_INT8", 5: "FORCE_INT16"}
	activationClipRangeU85 = Enum{0: "B16", 1: "NONE"}
	activationFormat       = Enum{0: "NHWC", 1: "NHCWB16"}
	activationFunctionU65  = Enum{0: "RELU", 3: "TANH", 4: "SIGMOID", 16: "TABLE_0", 17: "TABLE_1", 18: "TABLE_2", 19: "TABLE_3", 20: "TABLE_4", 21: "TABLE_5", 22: "TABLE_6", 23: "TABLE_7"}
	activationFunctionU85  = Enum{0: "LUT_NONE", 1: "LUT_U8_U8", 4: "LUT_S8_S8", 5: "LUT_S8_S16", 7: "LUT_S8_S32", 8: "LUT_S16_S16", 9: "LUT_S16_S32", 10: "LUT_TANH", 11: "LUT_SIGMOID"}
	activationPrecision    = Enum{0: "B8", 1: "B16", 2: "B32", 3: "B64"}
	activationReverse      = Enum{0: "NONE", 1: "H", 2: "W", 3: "C"}
	activationStorage      = Enum{0: "TILE2X2", 1: "TILE3X1", 2: "CHAINED", 3: "NONE"}
	activationTranspose    = Enum{0: "HWC", 1: "WHC", 2: "HCW", 3: "WCH", 6: "CHW", 7: "CWH"}
	activationType         = Enum{0: "UNSIGNED", 1: "SIGNED"}
	branchCond             = Enum{0: "ALWAYS", 1: "RF_TRUE"}
	broadcastModeU65       = Enum{0: "DISABLE", 1: "ENABLE"}
	broadcastModeU85       = Enum{0: "NONE", 1: "H", 2: "W", 3: "HW", 4: "C", 5: "CH", 6: "CW", 7: "CWH", 8: "SCALAR"}
	dmaIdxMode             = Enum{0: "DISABLED", 1: "ENABLED"}
	dmaRegionMode          = Enum{0: "EXTERNAL", 1: "INTERNAL"}
	dmaStrideMode          = Enum{0: "D1", 1: "D2", 2: "D3"}
	elementwiseModeU65     = Enum{0: "MUL", 1: "ADD", 2: "SUB", 3: "MIN", 4: "MAX", 5: "LRELU", 6: "ABS", 7: "CLZ", 8: "SHR", 9: "SHL"}
	elementwiseModeU85     = Enum{0: "MUL", 1: "ADD", 2: "SUB", 3: "MIN", 4: "MAX", 5: "LRELU", 6: "ABS", 7: "CLZ", 8: "SHR", 9: "SHL", 10: "LSR", 11: "DIV", 16: "CMP_EQ", 17: "CMP_NE", 18: "CMP_GE", 19: "CMP_GT", 33: "AND", 34: "OR", 35: "XOR", 36: "NOT", 42: "AND_NOT"}
	ifm2OperandOrder       = Enum{0: "ORDER_B", 1: "ORDER_A"}
	ifmScaleMode           = Enum{0: "OPA_OPB_16", 1: "OPA_32", 2: "OPB_32"}
	ifmUpscaleMode         = Enum{0: "NONE", 1: "NEAREST", 2: "ZEROS"}
	kernelDecomposition    = Enum{0: "D8X8", 1: "D4X4"}
	kernelDilation         = Enum{0: "NONE", 1: "X2"}
	microblock             = Enum{0: "U1X1", 1: "U1X2", 2: "U1X4", 3: "U2X2", 4: "U2X4", 5: "U4X4"}
	ofmScaleMode           = Enum{0: "PER_CHANNEL", 1: "GLOBAL"}
	parallelMode           = Enum{0: "SINGLE_CORE", 1: "DUAL_CORE_DEPTH"}
	poolingModeU65         = Enum{0: "MAX", 1: "AVERAGE", 2: "REDUCE_SUM"}
	poolingModeU85         = Enum{0: "MAX", 1: "AVERAGE", 2: "REDUCE_SUM", 3: "SUM", 4: "NONE", 5: "MIN", 6: "ARGMAX_X", 7: "ARGMAX_Y"}
	resizeMode             = Enum{0: "BILINEAR", 1: "REPLICATE", 2: "NEAREST"}
	roundMode              = Enum{0: "DBL", 1: "TRUNCATE", 2: "NATURAL"}
	roundModeIfm           = Enum{0: "DOUBLE_SYMMETRIC", 1: "NATURAL"}
	roundModeOfm           = Enum{0: "DOUBLE_SYMMETRIC", 1: "NATURAL", 2: "DOUBLE_ASYMMETRIC", 3: "SYMMETRIC", 4: "TRUNCATE_TO_ZERO", 5: "TRUNCATE_TO_LOWER"}
	weightFormat           = Enum{0: "SWD", 1: "FWD"}
	weightOrder            = Enum{0: "DEPTH_FIRST", 1: "PART_KERNEL_FIRST"}
	weightSparsity         = Enum{0: "NONE", 1: "SPARSE_2_4"}
)
