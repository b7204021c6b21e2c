package isa

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func words(w ...uint32) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

const (
	cop1   = 0x31504f43
	cop2   = 0x32504f43
	veum   = 0x4d554556
	u55128 = 0x00001807
	u85256 = 0x20000118
	stop   = 0xffff0000
)

func TestParsePayload(t *testing.T) {
	tests := []struct {
		name   string
		b      []byte
		want   string // configuration, or the error's text
		reason error
	}{
		{"COP1 U55", words(cop1, 0x00100001, u55128, 0x10066001, 5, 5, 5, 1<<16|2, stop), "ethos-u55-128", nil},
		{"COP2 U85", words(cop2, 1, 52, 0, 1, 44, 36, veum, 1, 20, u85256, 0, 2, 0, 0, ^uint32(0), stop), "ethos-u85-256", nil},
		{"empty", nil, "0 bytes", ErrMalformed},
		{"fourcc", words(0x39504f43), `"COP9"`, ErrMalformed},
		{"odd size", append(words(cop1), 0), "not whole words", ErrMalformed},
		{"action", words(cop1, 7), "word 1: malformed: action 0x7", ErrMalformed},
		{"configuration cut off", words(cop1, 1, 2), "truncated", ErrMalformed},
		{"product", words(cop1, 1, 0xf0000007, 0), "product 15", ErrUnsupported},
		{"MACs", words(cop1, 1, 0x0000000c, 0), "2^12 MACs", ErrUnsupported},
		{"stream too long", words(cop1, 1, u55128, 0, 9<<16|2, stop), "9 words, but only 1 are left", ErrMalformed},
		{"no configuration", words(cop1, 1<<16|2, stop), "no configuration", ErrMalformed},
		{"no stream", words(cop1, 1, u55128, 0), "no command stream", ErrMalformed},
		{"two streams", words(cop1, 1, u55128, 0, 1<<16|2, stop, 1<<16|2, stop), "second", ErrUnsupported},
		{"COP2 cut off", words(cop2, 1), "8 bytes", ErrMalformed},
		{"COP2 version", words(cop2, 2, 0, 0), "version 2.0", ErrUnsupported},
		{"COP2 total", words(cop2, 1, 8, 0), "8 bytes, but only 0 are left", ErrMalformed},
		{"COP2 entry size", words(cop2, 1, 8, 0, 1, 44), "44 bytes, but only 0 are left", ErrMalformed},
		{"COP2 tag", words(cop2, 1, 52, 0, 1, 44, 36, 0, 1, 20, u85256, 0, 2, 0, 0, 0, stop), "tag", ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParsePayload(tt.b)
			if tt.reason == nil {
				if err != nil || p.Config.String() != tt.want || string(p.Stream) != string(words(stop)) {
					t.Fatalf("got %+v, %v; want %s with a stream of STOP", p, err, tt.want)
				}
				return
			}
			if !errors.Is(err, tt.reason) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %v: …%s…", err, tt.reason, tt.want)
			}
		})
	}
}

func TestReader(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"fields and values", words(1<<16|uint32(OpPool), stop),
			"    0 NPU_OP_POOL pooling_mode=AVERAGE\n    1 NPU_OP_STOP mask=65535\n"},
		{"40 bits", words(0xff<<16|0x4000|0x15, 0xfffffff0), "    0 NPU_SET_OFM_STRIDE_Y 0xfffffffff0\n"},
		{"control bits", words(0x8000), "malformed: control bits 2"},
		{"unknown number", words(0x3ff), "no command 0x3ff (cmd0)"},
		{"of the other family", words(uint32(OpResize)), "no command 0x7"},
		{"truncated", words(0x4000), "word 0 (NPU_SET_IFM_BASE0): malformed: missing second word"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Disassemble(U65, tt.b)
			if err != nil {
				got += err.Error()
			}
			if !strings.HasSuffix(got, tt.want) && !strings.Contains(got, tt.want) {
				t.Fatalf("got %q, want …%q", got, tt.want)
			}
		})
	}
}

// TestTables checks the invariants of the tables: names of commands, and fields that are inside
// them.
func TestTables(t *testing.T) {
	for _, table := range [][]Command{commandsAll, commandsU65, commandsU85} {
		for _, c := range table {
			if want := strings.HasPrefix(c.Name, "NPU_OP_"); c.IsOp() != want {
				t.Errorf("%s: operation %v, want %v", c.Name, c.IsOp(), want)
			}
			end := uint8(32)
			if c.Code&Wide != 0 {
				end = 64
			}
			for _, f := range c.Fields {
				if f.LSB < 16 || f.Width != 40 && f.LSB+f.Width > end {
					t.Errorf("%s: field %s at bits %d+%d of %d", c.Name, f.Name, f.LSB, f.Width, end)
				}
			}
		}
	}
}
