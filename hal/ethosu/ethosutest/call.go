package ethosutest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// InputFile returns the file name of a vector's input, OutputFile that of an output.
func InputFile(i int) string  { return fmt.Sprintf("in%d.bin", i) }
func OutputFile(i int) string { return fmt.Sprintf("out%d.bin", i) }

// Record is the location of an input or output in a region.
type Record struct {
	Shape    [6]int
	ElemSize int
	Offset   int
	Region   int
}

// Bytes returns the size of the tensor.
func (r *Record) Bytes() int {
	n := r.ElemSize
	for _, s := range r.Shape {
		n *= s
	}
	return n
}

// Call is the parsed payload of a vector, for tests below the delegate.
type Call struct {
	Driver  *isa.Payload
	Weights []byte
	Scratch int64
	Inputs  []Record
	Outputs []Record
}

// Call parses the payload. The archives are trusted.
func (v *Vector) Call(t testing.TB) *Call {
	t.Helper()
	p, err := isa.ParsePayload(v.Block("cmd_data"))
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	return &Call{Driver: p, Weights: v.Block("weight_data"), Scratch: int64(binary.LittleEndian.Uint32(v.Block("scratch_size"))),
		Inputs: records(v.Block("inputs")), Outputs: records(v.Block("outputs"))}
}

func records(b []byte) []Record {
	number := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	out := make([]Record, number(0))
	for i := range out {
		at := 1 + 9*i
		for j := range out[i].Shape {
			out[i].Shape[j] = number(at + j)
		}
		out[i].ElemSize, out[i].Offset, out[i].Region = number(at+6), number(at+7), number(at+8)
	}
	return out
}

// Compare fails the test if bytes differ, and reports the first difference.
func Compare(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
		return
	}
	wrong, first := 0, 0
	for i := range want {
		if got[i] != want[i] {
			if wrong == 0 {
				first = i
			}
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d bytes differ, first byte %d: got %#x, want %#x", what, wrong, len(want), first, got[first], want[first])
	}
}
