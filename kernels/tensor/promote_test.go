package tensor

import "testing"

// promotions is the table of PyTorch's promote_types.
var promotions = struct {
	types []DType
	rows  [][]DType
}{
	[]DType{Uint8, Int8, Int16, Int32, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Bool, BFloat16},
	[][]DType{
		{Uint8, Int16, Int16, Int32, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Uint8, BFloat16},
		{Int16, Int8, Int16, Int32, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Int8, BFloat16},
		{Int16, Int16, Int16, Int32, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Int16, BFloat16},
		{Int32, Int32, Int32, Int32, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Int32, BFloat16},
		{Int64, Int64, Int64, Int64, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Int64, BFloat16},
		{Float16, Float16, Float16, Float16, Float16, Float16, Float32, Float64, Complex32, Complex64, Complex128, Float16, Float32},
		{Float32, Float32, Float32, Float32, Float32, Float32, Float32, Float64, Complex64, Complex64, Complex128, Float32, Float32},
		{Float64, Float64, Float64, Float64, Float64, Float64, Float64, Float64, Complex128, Complex128, Complex128, Float64, Float64},
		{Complex32, Complex32, Complex32, Complex32, Complex32, Complex32, Complex64, Complex128, Complex32, Complex64, Complex128, Complex32, Complex64},
		{Complex64, Complex64, Complex64, Complex64, Complex64, Complex64, Complex64, Complex128, Complex64, Complex64, Complex128, Complex64, Complex64},
		{Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128, Complex128},
		{Uint8, Int8, Int16, Int32, Int64, Float16, Float32, Float64, Complex32, Complex64, Complex128, Bool, BFloat16},
		{BFloat16, BFloat16, BFloat16, BFloat16, BFloat16, Float32, Float32, Float64, Complex64, Complex64, Complex128, BFloat16, BFloat16},
	},
}

func TestPromote(t *testing.T) {
	for i, a := range promotions.types {
		for j, b := range promotions.types {
			if got, want := Promote(a, b), promotions.rows[i][j]; got != want {
				t.Errorf("Promote(%v, %v): got %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestPromoteLateUnsigned(t *testing.T) {
	for _, u := range []DType{Uint16, Uint32, Uint64} {
		for b := range DType(NumDTypes) {
			want := NoDType
			if b == u || b.IsFloat() {
				want = b
			}
			if got := Promote(u, b); b.Valid() && got != want {
				t.Errorf("Promote(%v, %v): got %v, want %v", u, b, got, want)
			}
			if got := Promote(b, u); b.Valid() && got != want {
				t.Errorf("Promote(%v, %v): got %v, want %v", b, u, got, want)
			}
		}
	}
}

func TestPromoteRefuses(t *testing.T) {
	for _, odd := range []DType{QInt8, QUint8, QInt32, QUint4x2, Bits16, Float8E5M2, Float8E4M3FN} {
		if got := Promote(odd, odd); got != odd {
			t.Errorf("Promote(%v, %v): got %v, want it", odd, odd, got)
		}
		for _, b := range []DType{Uint8, Float32, Complex64, Bool} {
			if got := Promote(odd, b); got != NoDType {
				t.Errorf("Promote(%v, %v): got %v, want none", odd, b, got)
			}
		}
	}
}
