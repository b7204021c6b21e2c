package main

// constants are the numbers of the loops by name, as bits. Those of the exponential
// stand in generic.go as well, which says what they are.
var constants = []struct {
	name string
	bits uint32
}{
	{"expMax", 0x42b17218}, {"expMin", 0xc2cff1b5}, {"expNormal", 0xc2aeac4f}, {"log2e", 0x3fb8aa3b},
	{"ln2Hi", 0x3f318000}, {"ln2Lo", 0xb95e8083},
	{"expP0", 0x39506967}, {"expP1", 0x3ab743ce}, {"expP2", 0x3c088908}, {"expP3", 0x3d2aa9c1}, {"expP4", 0x3e2aaaaa}, {"expP5", 0x3f000000},
	{"one", 0x3f800000}, {"two", 0x40000000}, {"four", 0x40800000}, {"half", 0x3f000000}, {"three", 0x40400000}, {"six", 0x40c00000},
	{"bias", 0x0000007f}, {"infinity", 0x7f800000}, {"minusInfinity", 0xff800000}, {"signBit", 0x80000000},

	// Limits of expParts: from expPartsMin on the scale 2^n is a normal number, and up to
	// expPartsMax it is one or infinite. Beyond tanhMin and tanhMax nothing changes.
	{"expPartsMin", 0xc2ae999a}, {"expPartsMax", 0x42b20000}, {"tanhMin", 0xc1a00000}, {"tanhMax", 0x41a00000},
	// e^-r = 1 - r·(1 - r·(logistic2 - r·(logistic3 - …))) for |r| up to ln 2 / 2. Adding logisticMagic rounds to an integer,
	// whose last bits are the exponent of that power of 2.
	{"logistic2", 0x3efffffe}, {"logistic3", 0x3e2aaa49}, {"logistic4", 0x3d2aac79}, {"logistic5", 0x3c091cf8}, {"logistic6", 0x3ab5120e},
	{"logisticMagic", 0x4b40007f}, {"logisticMin", 0xc2b20000}, {"logisticMax", 0x42ae999a},
	{"geluSlope", 0x3fcc422a}, {"geluCubic", 0x3d922279},

	// erfc(a) = e^(-a²) · t·(erfc0 + t·(erfc1 + …)), t = 1 / (1 + erfcP·a), to within
	// 3·10⁻⁸ of itself for a up to 10.
	{"erfcP", 0x3ec28f5c}, {"erfc0", 0x3e5b8ff8}, {"erfc1", 0x3e5af585}, {"erfc2", 0x3e5177b1}, {"erfc3", 0x3e0b67a1}, {"erfc4", 0x3e717ae6},
	{"erfc5", 0xbe2dbf47}, {"erfc6", 0x3ebde3a4}, {"erfc7", 0xbe87fbb7}, {"erfc8", 0x3d743edd},
	{"sqrtHalf", 0x3f3504f3}, {"geluMax", 0x41600000},

	// erf(x) = x·(erf0 + x²·(erf1 + …)) up to 1 (Cephes erff); beyond, 1 - erfc has
	// enough places.
	{"erf0", 0x3f906eba}, {"erf1", 0xbec0939f}, {"erf2", 0x3de7167c}, {"erf3", 0xbcdbfc87}, {"erf4", 0x3baa02d9}, {"erf5", 0xba51fb80},
	{"erf6", 0x38a4b519},

	// x = 2^e·m with m from √½ to √2; log m = f - f²/2 + f³·(log0 + f·(log1 + …)) for
	// f = m - 1 (Cephes logf). exponentStep is the least normal number, too.
	{"exponentStep", 0x00800000}, {"log0", 0x3eaaaaaa}, {"log1", 0xbe7ffffc}, {"log2", 0x3e4cceac}, {"log3", 0xbe2aae50}, {"log4", 0x3e11e9bf},
	{"log5", 0xbdfe5d4f}, {"log6", 0x3def251a}, {"log7", 0xbdebd1b8}, {"log8", 0x3d9021bb},
	{"twentyThree", 0x41b80000}, {"exp2Of23", 0x4b000000},

	// π in three parts, and the sine from -π/2 to π/2: x + x³·(sin0 + x²·(sin1 + …)).
	{"reciprocalPi", 0x3ea2f983}, {"pi0", 0x40490fdb}, {"pi1", 0xb3bbbd2e}, {"pi2", 0xa7772ced},
	{"sin0", 0xbe2aaaa6}, {"sin1", 0x3c088777}, {"sin2", 0xb94fbaeb}, {"sin3", 0x362f0a87}, {"sineMax", 0x48000000},

	// Adding expMagic rounds to a multiple of 1/32, whose 32 fractions have their number in the last
	// bits. e^s = 1 + s·(1 + s·(exp2 + s·exp3)) for |s| up to ln 2 / 64.
	{"expMagic", 0x48c00000}, {"exp2", 0x3f000044}, {"exp3", 0x3e2aaabc},

	// e^(-q/2) of a square q = -2·(n·ln 2 + s): square0 and square1 are n's factors, e^s = 1 - q'·(square3 + …).
	{"square0", 0xbf38aa3b}, {"square1", 0xbfb17218}, {"square2", 0x3e000009}, {"square3", 0xbf00007b},

	// Below sigmoidMin e^x is nothing beside 1. Φ(-a) = e^(-a²/2)·t·(phi0 + t·(phi1 + …)), t = 1 / (1 + phiP·a),
	// to within 3·10⁻⁸ of itself for a up to 6, and some more beyond; from geluZero on it is 0.
	{"sigmoidMin", 0xc2000000}, {"zero", 0}, {"sixth", 0x3e2aaaab}, {"absolute", 0x7fffffff}, {"geluZero", 0x41500000}, {"phiP", 0x3e970a3d},
	{"phi0", 0x3df0b9d2}, {"phi1", 0x3df5fd68}, {"phi2", 0x3db8db20}, {"phi3", 0x3e1e620a}, {"phi4", 0xbdd0a14a}, {"phi5", 0x3e849297}, {"phi6", 0xbe365529}, {"phi7", 0x3d1d55ab},

	// Bytes of a 32-bit word, widened to 16 bits.
	{"firstPair", 0x80018000}, {"secondPair", 0x80038002},

	{"lowByte", 0x000000ff}, {"lowHalf", 0x0000ffff}, {"lowBit", 0x00000001}, {"quiet", 0x00007fc0}, {"almostHalf", 0x00007fff},
	{"exp2Of31", 0x4f000000},
}

func bitsOf(name string) uint32 {
	for _, c := range constants {
		if c.name == name {
			return c.bits
		}
	}
	panic("no constant " + name)
}
