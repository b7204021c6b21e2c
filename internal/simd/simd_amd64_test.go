//go:build !purego

package simd

import "testing"

// TestLowerLevels runs the tests on every instruction set below the machine's.
func TestLowerLevels(t *testing.T) {
	v, w := vector, wide
	defer func() { vector, wide = v, w }()
	for _, l := range []struct {
		name         string
		vector, wide bool
	}{{"avx2", v, false}, {"go", false, false}} {
		vector, wide = l.vector, l.wide
		for name, test := range map[string]func(*testing.T){
			"MulAdd": TestMulAdd, "Taps": TestTaps, "Fill": TestFill, "Rows": TestRows, "CopyRows": TestCopyRows, "Norm": TestNormRows, "Extremes": TestExtremes, "ExtremeTaps": TestExtremeTaps, "SumTaps": TestSumTaps, "Exp": TestExp,
			"Transpose": TestTranspose, "Wide": TestWide,
			"Table": TestTable, "Approximate": TestApproximate,
			"Widen": TestWiden, "Narrow": TestNarrow, "Place": TestPlaceDoesNotMatter, "Half": TestHalf,
		} {
			t.Run(l.name+" "+name, test)
		}
	}
}
