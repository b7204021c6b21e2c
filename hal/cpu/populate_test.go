package cpu

import (
	"bytes"
	"testing"
)

// TestPopulate checks that bytes keep their values, in memory of any size and position.
func TestPopulate(t *testing.T) {
	memory := bytes.Repeat([]byte{7}, 1<<17)
	for _, b := range [][]byte{nil, memory[:0], memory[1:], memory[4095:], memory[:len(memory)-1], memory[5000:5001]} {
		Populate(b)
	}
	if n := bytes.Count(memory, []byte{7}); n != len(memory) {
		t.Errorf("%d bytes changed", len(memory)-n)
	}
	clear(memory)
	for _, b := range [][]byte{nil, memory[:0], memory[1:], memory[5000:5001]} {
		Touch(b)
	}
	if n := bytes.Count(memory, []byte{0}); n != len(memory) {
		t.Errorf("%d bytes changed", len(memory)-n)
	}
}
