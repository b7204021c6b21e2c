package xnnpack_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
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

// payloadOf returns a program's first payload for the backend, and the program's named data.
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

// TestBackendNames checks the keys of named data that payloads use, also in truncated payloads.
func TestBackendNames(t *testing.T) {
	program, err := os.ReadFile("../../testdata/pte/named_data.pte")
	if err != nil {
		t.Fatal(err)
	}
	payload, data := payloadOf(t, program)
	keys, err := xnnpack.Backend{}.Names(payload)
	if err != nil || len(keys) != 2 {
		t.Fatalf("got %q, %v, want 2 keys", keys, err)
	}
	for _, key := range keys {
		if data[key] == nil {
			t.Errorf("key %q is not in the program", key)
		}
	}
	if _, err := (xnnpack.Backend{Engine: xnnpack.EngineGo}).Compile(context.Background(), &delegate.Payload{Data: payload}); !errors.Is(err, delegate.ErrMissing) {
		t.Errorf("without named data: got %v, want %v", err, delegate.ErrMissing)
	}
	own, _ := payloadOf(t, openArchive(t).read("addmul_bcast/xnnpack.pte"))
	if keys, err := (xnnpack.Backend{}).Names(own); err != nil || len(keys) > 0 {
		t.Errorf("payload without constants: got %q, %v, want no keys", keys, err)
	}
	for cut := range payload {
		if short, _ := (xnnpack.Backend{}).Names(payload[:cut]); slices.ContainsFunc(short, func(k string) bool { return !slices.Contains(keys, k) }) {
			t.Errorf("%d bytes of the payload: got %q, want only keys of %q", cut, short, keys)
		}
	}
}

// TestRepairsOfPrograms checks the repairs of exported programs: nodes that read a copy instead of
// its original, values transposed for a convolution, and those that convolutions read in several ways.
func TestRepairsOfPrograms(t *testing.T) {
	archive := openArchive(t)
	for _, c := range []struct {
		program string
		want    []string
	}{
		{"seed_b_dynq/oldpass_two_convs.pte", []string{"node 1 (Multiply): reads value 0", "node 3 (Convert): value 3 (fp32 [1 4 8 8]) transposed",
			"node 3 (Convert): value 5 (qdint8 [1 4 8 8]), which convolutions read in several ways: one for each"}},
		{"chlast/c1_conv_xnnpack.pte", nil},
		{"linear/xnnpack_q8.pte", nil},
	} {
		payload, data := payloadOf(t, archive.read(c.program))
		img, err := xnnpack.Backend{Engine: xnnpack.EngineGo}.Compile(context.Background(), &delegate.Payload{Data: payload, Named: data})
		if err != nil {
			t.Fatal(err)
		}
		got := img.Info().Repairs
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: got %q, want %q", c.program, got, c.want)
		}
		img.Close()
	}
}
