package prepare

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// namer is a backend whose payloads are lists of keys after their first byte.
type namer struct {
	delegate.Backend
	id string
}

func (n namer) ID() string { return n.id }

func (namer) Names(payload []byte) (keys []string, err error) {
	if payload[0] == '!' {
		return nil, errors.New("malformed")
	}
	for _, k := range bytes.Fields(payload[1:]) {
		keys = append(keys, string(k))
	}
	return keys, nil
}

// TestClaims releases only data that a single delegate reads.
func TestClaims(t *testing.T) {
	const piece = 64 << 10
	file := tensor.AlignedBytes(8 * piece)
	at := func(from, to int) []byte { return file[from*piece : to*piece] }
	payload := func(text string) []byte { return append([]byte(text), make([]byte, piece)...)[:len(text)] }
	named := map[string][]byte{"once": at(0, 1), "twice": at(1, 2), "tensor": at(2, 3), "a": at(3, 5), "b": at(4, 6), "never": at(6, 7)}
	inline := at(7, 8)
	copy(inline, " ")
	spec := func(third string) *pte.Program {
		return &pte.Program{Methods: []pte.Method{
			{Delegates: []pte.Delegate{{ID: "N", Data: payload(" once twice tensor")}, {ID: "N", Data: inline}},
				Values: []pte.Value{{Kind: tensor.KindTensor, Tensor: &pte.Tensor{Storage: pte.External, Name: "tensor"}}}},
			{Delegates: []pte.Delegate{{ID: "N", Data: payload(third)}}},
		}}
	}
	backends := map[string]delegate.Backend{"N": namer{id: "N"}, "silent": struct{ delegate.Backend }{}}
	silent := spec(" twice a b")
	silent.Methods[1].Delegates[0].ID = "silent"
	for _, c := range []struct {
		name    string
		program *pte.Program
		data    []byte
		want    bool
	}{
		{"named by one", spec(" twice a b"), named["once"], true},
		{"a part of it", spec(" twice a b"), named["once"][4096:8192], true},
		{"named by two methods", spec(" twice a b"), named["twice"], false},
		{"an external tensor", spec(" twice a b"), named["tensor"], false},
		{"overlapping another key", spec(" twice a b"), named["a"], false},
		{"inside a payload", spec(" twice a b"), inline[8192:], true},
		{"beyond one key", spec(" twice a b"), at(0, 2), false},
		{"unused bytes", spec(" twice a b"), make([]byte, piece), false},
		{"a backend that does not tell", silent, named["once"], false},
		{"a payload that is malformed", spec("! twice"), named["once"], false},
	} {
		for i := range c.data {
			c.data[i] = byte(i)
		}
		before := slices.Clone(c.data)
		reads := &Claims{File: c.program, Backends: backends, Data: func(key string) []byte { return named[key] }}
		if got := reads.release(c.data); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if !c.want && !bytes.Equal(before, c.data) {
			t.Errorf("%s: the bytes changed", c.name)
		}
		if middle := len(c.data)/2 + 1; c.want && len(c.data) == piece && runtime.GOOS == "linux" && c.data[middle] != 0 {
			t.Errorf("%s: the memory is still there", c.name)
		}
	}
}

// Unaligned constants are copied once each; overlapping ones must not be copied without limit.
func TestConstantsOutOfAlignment(t *testing.T) {
	bytes, none := tensor.AlignedBytes(1<<20), kernels.NewSet(nil)
	spec := pte.Method{Name: "forward", Chains: []pte.Chain{{}}}
	for i := range 4000 {
		data := bytes[1+i%8 : len(bytes)-8+i%8]
		data = data[:len(data)/8*8-8*(i/8)]
		spec.Values = append(spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{len(data) / 8},
			DimOrder: []uint8{0}, Storage: pte.Constant, Data: data}})
	}
	for _, c := range []struct {
		constants int
		want      error
	}{{1, nil}, {len(spec.Values), pte.ErrFormat}} {
		some := spec
		some.Values = spec.Values[:c.constants]
		p := &Preparation{Source: Source{File: &pte.Program{}, Method: &some, Data: silent{}, Pool: cpu.NewPool(1), FileBytes: int64(len(bytes)),
			Options: Options{Operators: none, Known: none, Limits: Limits{Planned: 1 << 30}}}}
		if _, err := p.Run(t.Context(), silent{}); !errors.Is(err, c.want) {
			t.Errorf("%d constants: got %v, want %v", c.constants, err, c.want)
		}
		p.Close(silent{})
		p.Pool.Close()
	}
}
