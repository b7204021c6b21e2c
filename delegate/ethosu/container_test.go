package ethosu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// part is a block of a test payload.
type part struct {
	name     string
	external bool
	data     []byte
}

// parts splits a well-formed payload into blocks.
func parts(b []byte) (out []part) {
	for len(b) >= blockHeader {
		size := int(binary.LittleEndian.Uint32(b[nameBytes:]))
		out = append(out, part{blockName(b), b[nameBytes+4] != 0, bytes.Clone(b[blockHeader : blockHeader+size])})
		b = b[blockHeader+(size+15)/16*16:]
	}
	return out
}

// join builds a payload from blocks.
func join(list []part) (b []byte) {
	for _, p := range list {
		h := make([]byte, blockHeader)
		copy(h, p.name)
		binary.LittleEndian.PutUint32(h[nameBytes:], uint32(len(p.data)))
		if p.external {
			h[nameBytes+4] = 1
		}
		b = append(append(b, h...), p.data...)
		b = append(b, make([]byte, -len(b)&15)...)
	}
	return b
}

// with returns blocks with a change to the one with the given name.
func with(list []part, name string, change func(p *part)) []part {
	out := append([]part(nil), list...)
	for i := range out {
		if out[i].name == name {
			out[i].data = bytes.Clone(out[i].data)
			change(&out[i])
		}
	}
	return out
}

func put(at int, v int32) func(p *part) {
	return func(p *part) { binary.LittleEndian.PutUint32(p.data[at:], uint32(v)) }
}

func TestParseFaults(t *testing.T) {
	good := ethosutest.Find(t, "u55-128/conv3x3/d0").Payload()
	list := parts(good)
	tests := []struct {
		name    string
		payload []byte
		reason  error
		want    string
	}{
		{"empty", nil, delegate.ErrPayload, "0 bytes"},
		{"odd size", good[:len(good)-1], delegate.ErrPayload, "multiple of 16"},
		{"first block", append([]byte("x"), good[1:]...), delegate.ErrPayload, "first block"},
		{"end cut off", good[:len(good)-32], delegate.ErrPayload, "last block"},
		{"after the end", append(bytes.Clone(good), good[len(good)-32:]...), delegate.ErrPayload, "follow it"},
		{"unknown block", join(with(list, "weight_data", func(p *part) { p.name = "bias_data" })), delegate.ErrPayload, "unknown block"},
		{"block twice", join(append(list[:2:2], list[1:]...)), delegate.ErrPayload, "duplicate block"},
		{"block missing", join(append(list[:5:5], list[6:]...)), delegate.ErrPayload, `no block "outputs"`},
		{"size beyond the end", damaged(good, 32+16, 0x7fffffff), delegate.ErrPayload, "are left"},
		{"size that wraps", damaged(good, 32+16, -1), delegate.ErrPayload, "are left"},
		{"scratch of two bytes", join(with(list, "scratch_size", func(p *part) { p.data = p.data[:2] })), delegate.ErrPayload, "2 bytes, want 4"},
		{"negative count", join(with(list, "outputs", put(0, -1))), delegate.ErrPayload, "-1 records"},
		{"large count", join(with(list, "inputs", put(0, 1000))), delegate.ErrPayload, "1000 records"},
		{"size 0", join(with(list, "inputs", put(4, 0))), delegate.ErrPayload, "size 0"},
		{"shape overflows", join(with(list, "inputs", put(4, 1<<30))), delegate.ErrPayload, "too many elements"},
		{"element size 0", join(with(list, "outputs", put(28, 0))), delegate.ErrPayload, "elements of 0 bytes"},
		{"negative offset", join(with(list, "inputs", put(32, -16))), delegate.ErrPayload, "offset -16"},
		{"offset outside", join(with(list, "outputs", put(32, 1<<28))), delegate.ErrPayload, "output 0: bytes 0x10000000"},
		{"region 5", join(with(list, "outputs", put(36, 5))), delegate.ErrPayload, "region 5"},
		{"input from the outputs' region", join(with(list, "inputs", put(36, 4))), delegate.ErrPayload, "region 4"},
		{"key of the wrong length", join(with(list, "cmd_data", func(p *part) { p.external = true })), delegate.ErrPayload, "want 64"},
		{"external data not allowed", join(with(list, "inputs", func(p *part) { p.external = true })), delegate.ErrPayload, "cmd_data and weight_data only"},
		{"external data missing", join(with(list, "cmd_data", func(p *part) { p.external, p.data = true, bytes.Repeat([]byte("a"), 64) })), delegate.ErrMissing, ".ptd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(tt.payload, nil)
			var e *delegate.Error
			if !errors.As(err, &e) || !errors.Is(err, tt.reason) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %v: …%s…", err, tt.reason, tt.want)
			}
		})
	}
}

func damaged(b []byte, at int, v int32) []byte {
	out := bytes.Clone(b)
	binary.LittleEndian.PutUint32(out[at:], uint32(v))
	return out
}

// namedData is the data of external blocks.
type namedData map[string][]byte

func (n namedData) Named(key string) ([]byte, bool) { b, ok := n[key]; return b, ok }

// TestExternalBlocks moves the commands and weights of a payload to external data.
func TestExternalBlocks(t *testing.T) {
	v := ethosutest.Find(t, "u85-256/digits_cnn/d0")
	data, list := namedData{}, parts(v.Payload())
	for i, name := range []string{"cmd_data", "weight_data"} {
		list = with(list, name, func(p *part) {
			key := strings.Repeat(string(rune('a'+i)), keyBytes)
			data[key], p.external, p.data = p.data, true, []byte(key)
		})
	}
	specs, _ := args(t, v.Payload())
	c, err := newCall(t, &delegate.Payload{Data: join(list), Named: data, Args: specs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.run(t, v)
	c.check(t, v)
}

// TestOldRecords reads records in the format of ExecuTorch 0.7 and permutes channels as its runtime
// did.
func TestOldRecords(t *testing.T) {
	v := ethosutest.Find(t, "u55-128/relu/d0")
	list := parts(v.Payload())
	var shape [6]int
	for _, name := range []string{"inputs", "outputs"} {
		list = with(list, name, func(p *part) {
			p.data = append(p.data[:4:4], p.data[4+8:]...) // without the first two sizes
			for i := range shape {
				shape[i] = int(binary.LittleEndian.Uint32(p.data[max(4+4*(i-2), 4):]))
			}
		})
	}
	n, h, w, c := shape[2], shape[3], shape[4], shape[5] // the NPU's order
	nchw := []int{n, c, h, w}
	a := &delegate.ArgSpec{DType: written(1), Sizes: nchw}
	cl, err := newCall(t, &delegate.Payload{Data: join(list), Args: []*delegate.ArgSpec{a, a}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	moved := func(b []byte) []byte { // NHWC to NCHW
		out := make([]byte, len(b))
		for p := range h * w {
			for k := range c {
				out[k*h*w+p] = b[p*c+k]
			}
		}
		return out
	}
	v = &ethosutest.Vector{Name: v.Name, Files: map[string][]byte{"in0.bin": moved(v.Files["in0.bin"]), "out0.bin": moved(v.Files["out0.bin"])}}
	cl.run(t, v)
	cl.check(t, v)
}

// A payload's keys are found whether their data is available or not.
func TestBackendNames(t *testing.T) {
	for file, want := range map[string]int{"external.pte": 2, "digits.pte": 0} {
		program, err := os.ReadFile("../../testdata/ethosu/programs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pte.Parse(program, pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		payload := p.Methods[0].Delegates[0].Data
		keys, err := Backend{}.Names(payload)
		if err != nil || len(keys) != want {
			t.Errorf("%s: got %q, %v, want %d", file, keys, err, want)
		}
		for _, key := range keys {
			if len(key) != keyBytes {
				t.Errorf("%s: key %q of %d bytes, want %d", file, key, len(key), keyBytes)
			}
		}
		if keys, err := (Backend{}).Names(payload[:len(payload)/2]); err == nil {
			t.Errorf("half of %s: got %q without an error", file, keys)
		}
	}
}
