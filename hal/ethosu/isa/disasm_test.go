package isa_test

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// TestDisassemble compares with the disassemblies of the test archives, which another program made.
func TestDisassemble(t *testing.T) {
	n := 0
	for _, v := range ethosutest.Vectors(t, "*") {
		golden := v.Files["dis.txt"]
		if golden == nil {
			continue
		}
		n++
		t.Run(v.Name, func(t *testing.T) {
			p, err := isa.ParsePayload(v.Block("cmd_data"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := isa.Disassemble(p.Config.Family, p.Stream)
			if err != nil {
				t.Fatal(err)
			}
			want, got := lines(string(golden)), lines(text)
			for i := range want {
				if w := strings.TrimRight(want[i], " "); i >= len(got) || got[i] != w {
					t.Fatalf("line %d: %q, want %q", i+1, got[min(i, len(got)-1)], w)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d lines, want %d", len(got), len(want))
			}
		})
	}
	if n == 0 {
		t.Error("no disassembly in the archives")
	}
}

func lines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
