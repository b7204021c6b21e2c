package xnnpack_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/pte"
)

// named is a program's named data.
type named map[string][]byte

func (n named) Named(key string) ([]byte, bool) {
	data, ok := n[key]
	return data, ok
}

// payloadOf is the first payload for the backend in a program, with the program's data.
func payloadOf(t *testing.T, program []byte) ([]byte, named) {
	t.Helper()
	p, err := pte.Parse(program, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Methods {
		for _, d := range p.Methods[i].Delegates {
			if d.ID == xnnpack.ID {
				return d.Data, p.Named
			}
		}
	}
	t.Fatal("no payload")
	return nil, nil
}

func TestNamedKeys(t *testing.T) {
	program, err := os.ReadFile("../../testdata/pte/named_data.pte")
	if err != nil {
		t.Fatal(err)
	}
	payload, data := payloadOf(t, program)
	keys, err := xnnpack.NamedKeys(payload)
	if err != nil || len(keys) != 2 {
		t.Fatalf("got %q, %v, want 2 keys", keys, err)
	}
	for _, key := range keys {
		if data[key] == nil {
			t.Errorf("key %q is not in the program", key)
		}
	}
	if _, err := (xnnpack.Backend{Engine: xnnpack.EngineReference}).Compile(context.Background(), &delegate.Payload{Data: payload}); !errors.Is(err, delegate.ErrMissing) {
		t.Errorf("without its data: %v, want %v", err, delegate.ErrMissing)
	}
	own, _ := payloadOf(t, openArchive(t).read("addmul_bcast/xnnpack.pte"))
	if keys, err := xnnpack.NamedKeys(own); err != nil || len(keys) > 0 {
		t.Errorf("a payload without constants: got %q, %v", keys, err)
	}
	for cut := range payload {
		if short, _ := xnnpack.NamedKeys(payload[:cut]); slices.ContainsFunc(short, func(k string) bool { return !slices.Contains(keys, k) }) {
			t.Errorf("%d bytes of the payload: got %q, which are not in %q", cut, short, keys)
		}
	}
}

func TestLayoutRepairs(t *testing.T) {
	archive := openArchive(t)
	for _, c := range []struct {
		program string
		want    int
	}{
		{"seed_b_dynq/oldpass_two_convs.pte", 3}, // a product and the inputs of two convolutions,
		{"chlast/c1_conv_xnnpack.pte", 0},
		{"linear/xnnpack_q8.pte", 0},
	} {
		got, err := xnnpack.LayoutRepairs(payloadOf(t, archive.read(c.program)))
		if err != nil || got != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.program, got, err, c.want)
		}
	}
}
