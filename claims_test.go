package etrun

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
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
	d := &dataMap{entries: make(map[string]dataEntry)}
	named := map[string][]byte{"once": at(0, 1), "twice": at(1, 2), "tensor": at(2, 3), "a": at(3, 5), "b": at(4, 6), "never": at(6, 7)}
	for key, data := range named {
		d.entries[key] = dataEntry{pte.DataEntry{Data: data}, program}
	}
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
		var reads claims
		if got := reads.release(c.program, d, backends, c.data); got != c.want {
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

// failing releases as much of a payload as possible, and fails.
type failing struct{ delegate.Backend }

func (failing) ID() string { return "XnnpackBackend" }

func (failing) Names([]byte) ([]string, error) { return nil, nil }

func (failing) Compile(_ context.Context, p *delegate.Payload) (delegate.Image, error) {
	if !p.Release(p.Data) {
		return nil, errors.New("nothing was given back")
	}
	return nil, errors.New("planted")
}

// TestLost loads a method whose delegate fails after its weights were released: later loads must
// fail too, instead of computing with undefined data.
func TestLost(t *testing.T) {
	p, err := Open("testdata/digits/xnnpack.pte", WithDelegates(&failing{}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i, want := range []string{"planted", "open the program again"} {
		_, err := p.Load(t.Context(), "")
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("load %d: got %v, want %q", i, err, want)
		}
	}
}

// Unaligned constants are copied once each; overlapping ones must not be copied without limit.
func TestConstantsOutOfAlignment(t *testing.T) {
	bytes := tensor.AlignedBytes(1 << 20)
	spec := exectest.Small()
	for i := range 4000 {
		data := bytes[1+i%8 : len(bytes)-8+i%8]
		data = data[:len(data)/8*8-8*(i/8)]
		spec.Values = append(spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{len(data) / 8},
			DimOrder: []uint8{0}, Storage: pte.Constant, Data: data}})
	}
	p := flowMethods([]pte.Method{spec})
	p.files = []*file{{data: bytes}}
	p.makeSlots()
	if _, err := p.Load(context.Background(), ""); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want a refusal", err)
	}
}
