package main

import "strings"

const haveF16C = " Every processor with AVX2 has F16C, which came before it."

// Conversions: rows are what is converted, and how a block is loaded, turned and stored.
var widenings = family{name: "widen", about: "Conversions of bytes." + haveF16C, loops: []loop{
	widening("Int8ToInt32", "int32", "int8 to int32", loadInt8, nothing),
	widening("Uint8ToInt32", "int32", "uint8 to int32", loadUint8, nothing),
	widening("BoolToInt32", "int32", "bytes to 0 where they are 0 and 1 elsewhere", loadBool, intTruth),
	widening("Int16ToInt32", "int32", "int16 to int32", loadInt16, nothing),
	widening("Uint16ToInt32", "int32", "uint16 to int32", loadUint16, nothing),
	widening("Int8ToFloat", "float32", "int8 to float32", loadInt8, toFloat),
	widening("Uint8ToFloat", "float32", "uint8 to float32", loadUint8, toFloat),
	widening("BoolToFloat", "float32", "bytes to 0 where they are 0 and 1 elsewhere", loadBool, truthToFloat),
	widening("Int16ToFloat", "float32", "int16 to float32", loadInt16, toFloat),
	widening("Uint16ToFloat", "float32", "uint16 to float32", loadUint16, toFloat),
	widening("Int32ToFloat", "float32", "int32 to float32, rounded to nearest even", loadWord, toFloat),
	widening("HalfToFloat", "float32", "float16 to float32, exactly", loadHalf, nothing),
	widening("BFloatToFloat", "float32", "bfloat16 to float32, exactly", loadUint16, upper),
}}

var narrowings = family{name: "narrow", about: "Conversions to bytes." + haveF16C, loops: []loop{
	narrowing("Int32To8", "int32", "int32 to their low 8 bits", nothing, store8),
	narrowing("Int32To16", "int32", "int32 to their low 16 bits", nothing, store16),
	narrowing("Int32ToBool", "int32", "int32 to 0 where they are 0 and 1 elsewhere", intTruthOut, store8),
	narrowing("FloatToInt32", "float32",
		"float32 to int32, truncated toward zero, where the least integer stands for what does not fit and for NaN",
		toInt, store32),
	narrowing("FloatTo8", "float32", "float32 to the low 8 bits of what [FloatToInt32] makes of them", toInt, store8),
	narrowing("FloatTo16", "float32", "float32 to the low 16 bits of what [FloatToInt32] makes of them", toInt, store16),
	narrowing("FloatToBool", "float32", "float32 to 0 for zeros and 1 for all else", floatTruth, store8),
	narrowing("FloatToHalf", "float32", "float32 to float16, rounded to nearest even; a NaN stays one", nothing, storeHalf),
	narrowing("FloatToBFloat", "float32", "float32 to bfloat16, rounded to nearest even; a NaN becomes 0x7fc0", toBFloat, store16),
}}

// step is a part of a conversion: on eight elements in Y0, on sixteen in Z0 and on four
// in V0. Where avx512 is empty it is avx2 with the longer registers.
type step struct {
	avx2, avx512, neon string
	setup              string // on NEON
	four               string // on NEON, of four blocks in V0 to V3
	size               int    // bytes of a stored element
}

func (s step) pair() string {
	if s.avx512 != "" {
		return s.avx512
	}
	return strings.ReplaceAll(s.avx2, "Y", "Z")
}

func widening(name, dst, doc string, load, turn step) loop {
	return conversion(name, doc, &kind{dst: dst, operands: []operand{{"src", "byte"}}, size: load.size}, load, turn, store32)
}

func narrowing(name, src, doc string, turn, store step) loop {
	return conversion(name, doc, &kind{dst: "byte", operands: []operand{{"src", src}}, size: store.size}, loadWord, turn, store)
}

func conversion(name, doc string, k *kind, load, turn, store step) loop {
	k.amd64, k.arm64, k.wrapper = convertAMD64, convertARM64, conversionWrapper
	return loop{name: name, doc: doc, kind: k,
		amd64: code{body: lines(load.avx2, turn.avx2, store.avx2), pair: lines(load.pair(), turn.pair(), store.pair())},
		arm64: code{setup: load.setup + turn.setup, body: lines(load.neon, turn.neon, store.neon), four: fourBlocks(load, turn, store)}}
}

// fourBlocks are the instructions for four blocks on NEON in V0 to V3, "" where a part of them has none.
func fourBlocks(load, turn, store step) (text string) {
	if load.four == "" || store.four == "" {
		return ""
	}
	text = load.four
	for i := range 4 {
		text += "\n" + copies{1, map[int]int{0: i, 1: 4, 2: 16}}.body(lines(turn.neon))
	}
	return lines(text, store.four)
}

const (
	load4Bytes  = "FMOVS.P 4(R2), F0\n"
	load4Halves = "VLD1.P 8(R2), [V0.H4]\n"
	load8Halves = "VLD1.P 32(R2), [V0.H8, V1.H8]\n"
)

// widened loads sixteen bytes and makes words of them.
func widened(bytes, halves string) string {
	return "VLD1.P 16(R2), [V0.B16] \n" + bytes + "_2(2, 0) \n" + bytes + "(0, 0) \n" +
		halves + "_2(3, 2) \n" + halves + "(2, 2) \n" + halves + "_2(1, 0) \n" + halves + "(0, 0)"
}

// narrowed makes halves of words and stores sixteen.
func narrowed(op string) string {
	return op + "(0, 0) \n" + op + "_2(0, 1) \n" + op + "(1, 2) \n" + op + "_2(1, 3) \n VST1.P [V0.H8, V1.H8], 32(R1)"
}

var (
	loadInt8   = step{four: widened("SXTL8", "SXTL16"), size: 1, avx2: "VPMOVSXBD (SI)(AX*1), Y0", neon: load4Bytes + "SXTL8(0, 0) \n SXTL16(0, 0)"}
	loadUint8  = step{four: widened("UXTL8", "UXTL16"), size: 1, avx2: "VPMOVZXBD (SI)(AX*1), Y0", neon: load4Bytes + "VUSHLL $0, V0.B8, V0.H8 \n VUSHLL $0, V0.H4, V0.S4"}
	loadInt16  = step{four: load8Halves + "SXTL16_2(3, 1) \n SXTL16(2, 1) \n SXTL16_2(1, 0) \n SXTL16(0, 0)", size: 2, avx2: "VPMOVSXWD (SI)(AX*2), Y0", neon: load4Halves + "SXTL16(0, 0)"}
	loadUint16 = step{four: load8Halves + "UXTL16_2(3, 1) \n UXTL16(2, 1) \n UXTL16_2(1, 0) \n UXTL16(0, 0)", size: 2, avx2: "VPMOVZXWD (SI)(AX*2), Y0", neon: load4Halves + "VUSHLL $0, V0.H4, V0.S4"}
	loadWord   = step{four: "VLD1.P 64(R2), [V0.S4, V1.S4, V2.S4, V3.S4]", size: 4, avx2: "VMOVUPS (SI)(AX*4), Y0", neon: "VLD1.P 16(R2), [V0.S4]"}
	loadHalf   = step{four: load8Halves + "FCVTL_2(3, 1) \n FCVTL(2, 1) \n FCVTL_2(1, 0) \n FCVTL(0, 0)", size: 2, avx2: "VCVTPH2PS (SI)(AX*2), Y0", neon: load4Halves + "FCVTL(0, 0)"}
	// On NEON the bytes become 0 and 1 here, before they are widened.
	loadBool = step{size: 1, avx2: loadUint8.avx2, neon: load4Bytes + "CMEQ0_8(0, 0) \n SXTL8(0, 0) \n SXTL16(0, 0) \n BIC(0, 7, 0)",
		setup: constant("lowBit", 7)}

	nothing     = step{}
	toFloat     = step{avx2: "VCVTDQ2PS Y0, Y0", neon: "SCVTF(0, 0)"}
	upper       = step{avx2: "VPSLLD $16, Y0, Y0", neon: "VSHL $16, V0.S4, V0.S4"}
	intTruth    = step{avx2: amd64IntTruth, avx512: amd64IntTruthPair}
	intTruthOut = step{avx2: amd64IntTruth, avx512: amd64IntTruthPair, neon: "CMEQ0(0, 0) \n BIC(0, 7, 0)", setup: constant("lowBit", 7)}

	truthToFloat = step{avx2: amd64IntTruth + "VCVTDQ2PS Y0, Y0", avx512: amd64IntTruthPair + "VCVTDQ2PS Z0, Z0", neon: "SCVTF(0, 0)"}

	floatTruth = step{
		avx2:   "VXORPS Y1, Y1, Y1 \n VCMPPS $4, Y1, Y0, Y0 \n VPAND lowBit<>(SB), Y0, Y0",
		avx512: "VPXORD Z1, Z1, Z1 \n VCMPPS $4, Z1, Z0, K1 \n VPBROADCASTD.Z lowBit<>(SB), K1, Z0",
		neon:   "FCMEQ0(0, 0) \n BIC(0, 7, 0)", setup: constant("lowBit", 7)}

	// NEON's instruction gives the largest integer for what is above it, and 0 for NaN.
	toInt = step{avx2: "VCVTTPS2DQ Y0, Y0", neon: "FCMGT(1, 5, 0) \n FCVTZS(0, 0) \n BIF(0, 6, 1)",
		setup: constant("exp2Of31", 5) + constant("signBit", 6)}

	// Half of the last place that stays, less one where that place is even, rounds by its
	// carry.
	toBFloat = step{
		avx2: `
			VCMPPS    $3, Y0, Y0, Y1
			VPSRLD    $16, Y0, Y2
			VPAND     lowBit<>(SB), Y2, Y2
			VPADDD    almostHalf<>(SB), Y0, Y0
			VPADDD    Y2, Y0, Y0
			VPSRLD    $16, Y0, Y0
			VMOVUPS   quiet<>(SB), Y2
			VBLENDVPS Y1, Y2, Y0, Y0`,
		avx512: `
			VCMPPS       $3, Z0, Z0, K1
			VPSRLD       $16, Z0, Z2
			VPANDD.BCST  lowBit<>(SB), Z2, Z2
			VPADDD.BCST  almostHalf<>(SB), Z0, Z0
			VPADDD       Z2, Z0, Z0
			VPSRLD       $16, Z0, Z0
			VPBROADCASTD quiet<>(SB), K1, Z0`,
		neon: `
			FCMEQ(1, 0, 0)
			VUSHR $16, V0.S4, V2.S4
			VAND  V7.B16, V2.B16, V2.B16
			VADD  V6.S4, V0.S4, V0.S4
			VADD  V2.S4, V0.S4, V0.S4
			VUSHR $16, V0.S4, V0.S4
			BIF(0, 5, 1)`,
		setup: constant("quiet", 5) + constant("almostHalf", 6) + constant("lowBit", 7)}

	store32 = step{four: "VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R1)", size: 4, avx2: "VMOVUPS Y0, (DI)(AX*4)", neon: "VST1.P [V0.S4], 16(R1)"}
	store16 = step{four: narrowed("XTN16"), size: 2,
		avx2:   "VPAND lowHalf<>(SB), Y0, Y0 \n VEXTRACTI128 $1, Y0, X1 \n VPACKUSDW X1, X0, X0 \n VMOVDQU X0, (DI)(AX*2)",
		avx512: "VPMOVDW Z0, (DI)(AX*2)",
		neon:   "XTN16(0, 0) \n VST1.P [V0.H4], 8(R1)"}
	store8 = step{four: "XTN16(0, 0) \n XTN16_2(0, 1) \n XTN16(1, 2) \n XTN16_2(1, 3) \n XTN8(0, 0) \n XTN8_2(0, 1) \n VST1.P [V0.B16], 16(R1)", size: 1,
		avx2: "VPAND lowByte<>(SB), Y0, Y0 \n VEXTRACTI128 $1, Y0, X1 \n VPACKUSDW X1, X0, X0 \n VPACKUSWB X0, X0, X0 \n" +
			"VMOVQ X0, (DI)(AX*1)",
		avx512: "VPMOVDB Z0, (DI)(AX*1)",
		neon:   "XTN16(0, 0) \n XTN8(0, 0) \n FMOVS.P F0, 4(R1)"}
	storeHalf = step{four: narrowed("FCVTN"), size: 2, avx2: "VCVTPS2PH $0, Y0, (DI)(AX*2)", neon: "FCVTN(0, 0) \n VST1.P [V0.H4], 8(R1)"}
)

// Truths of integers: 1 for all but 0.
const (
	amd64IntTruth     = "VPXOR Y1, Y1, Y1\nVPCMPEQD Y1, Y0, Y0\nVPANDN lowBit<>(SB), Y0, Y0\n"
	amd64IntTruthPair = "VPTESTMD Z0, Z0, K1\nVPBROADCASTD.Z lowBit<>(SB), K1, Z0\n"
)
