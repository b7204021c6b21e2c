package simd

// Converter is a conversion of the table from or to bytes, Size for each element.
type Converter[F any] struct {
	Size int
	F    F
}

// The functions of the table by their names.
var (
	UnaryFloats    = byName(unaryFloats)
	BinaryFloats   = byName(binaryFloats)
	CompareFloats  = byName(compareFloats)
	UnaryInts      = byName(unaryInts)
	BinaryInts     = byName(binaryInts)
	CompareInts    = byName(compareInts)
	Selections     = byName(selections)
	Approximations = byName(approximations)
	WidenInts      = converters(widenInts)
	WidenFloats    = converters(widenFloats)
	NarrowInts     = converters(narrowInts)
	NarrowFloats   = converters(narrowFloats)
)

func byName[F any](list []pair[F]) map[string]F {
	m := make(map[string]F, len(list))
	for _, p := range list {
		m[p.name] = p.f
	}
	return m
}

func converters[F any](list []conversion[F]) map[string]Converter[F] {
	m := make(map[string]Converter[F], len(list))
	for _, c := range list {
		m[c.name] = Converter[F]{c.size, c.f}
	}
	return m
}
