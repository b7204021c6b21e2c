//go:build linux

package ethosu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// What a payload of a campaign may cost.
const (
	campaignMemory = 64 << 20
	largestPayload = 64 << 10
)

// TestPayloads compiles and runs payloads whose blocks, command words or bytes were
// changed.
func TestPayloads(t *testing.T) {
	c := &campaign.Campaign{Test: "TestPayloads", Usual: 300, Memory: campaignMemory + 64<<20,
		Counters: []string{"payloads", "compiled", "calls"}, Start: startPayloads}
	c.Run(t)
}

func startPayloads(t *testing.T, p *campaign.Process) func(seed uint64) error {
	var seeds [][]byte
	for _, v := range ethosutest.Vectors(t, "*") {
		seeds = append(seeds, v.Payload())
	}
	seeds = append(seeds, corpusPayloads()...)
	small := seeds[:0]
	for _, b := range seeds {
		if len(b) <= largestPayload {
			small = append(small, b)
		}
	}
	return func(seed uint64) error {
		r := rand.New(rand.NewPCG(seed, 5))
		b := mutatePayload(r, small[r.IntN(len(small))])
		p.Count(0, 1)
		before := bytes.Clone(b)
		if err := runPayload(b, p.Count); err != nil {
			return err
		}
		if !bytes.Equal(b, before) {
			return errors.New("the payload changed")
		}
		return nil
	}
}

// corpusPayloads are the payloads of the programs, and files of payloads, of the
// campaign's corpus.
func corpusPayloads() (list [][]byte) {
	for _, name := range campaign.Corpus(".vela") {
		if b, err := os.ReadFile(name); err == nil {
			list = append(list, b)
		}
	}
	for _, name := range campaign.Corpus(".pte") {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		p, err := pte.Parse(b, pte.Limits{})
		if err != nil {
			continue
		}
		for _, m := range p.Methods {
			for _, d := range m.Delegates {
				if d.ID == (Backend{}).ID() {
					list = append(list, d.Data)
				}
			}
		}
	}
	return list
}

// mutatePayload changes words of blocks, sizes of blocks, their order, or bytes.
func mutatePayload(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	if r.IntN(6) > 0 && wellFormed(b) {
		list := parts(b)
		for range 1 + r.IntN(4) {
			mutatePart(r, list)
		}
		b = join(list)
	}
	for r.IntN(4) == 0 && len(b) > 0 {
		b[r.IntN(len(b))] = byte(r.Uint32())
	}
	if r.IntN(30) == 0 {
		b = b[:r.IntN(len(b)+1)]
	}
	return b
}

// wellFormed reports blocks that lie within b.
func wellFormed(b []byte) bool {
	for len(b) >= blockHeader {
		next := blockHeader + (int(binary.LittleEndian.Uint32(b[nameBytes:]))+15)/16*16
		if next > len(b) {
			return false
		}
		b = b[next:]
	}
	return true
}

// mutatePart changes a block, most often the command stream.
func mutatePart(r *rand.Rand, list []part) {
	if len(list) == 0 {
		return
	}
	i := r.IntN(len(list))
	for k := range list {
		if list[k].name == "cmd_data" && r.IntN(2) == 0 {
			i = k
		}
	}
	p := &list[i]
	p.data = bytes.Clone(p.data)
	if len(p.data) < 4 || r.IntN(10) == 0 {
		p.data = p.data[:r.IntN(len(p.data)+1)]
		return
	}
	word := p.data[r.IntN(len(p.data)/4)*4:][:4]
	le := binary.LittleEndian
	switch r.IntN(8) {
	case 0:
		le.PutUint32(word, r.Uint32())
	case 1:
		le.PutUint32(word, 1<<r.IntN(32)-uint32(r.IntN(2)))
	case 2: // a word that another place has
		copy(word, p.data[r.IntN(len(p.data)/4)*4:][:4])
	case 3:
		le.PutUint32(word, le.Uint32(word)+uint32(r.IntN(5))-2)
	case 4: // the parameter of a command
		le.PutUint16(word[2:], []uint16{0, 1, 2, 15, 16, 255, 256, 0x7fff, 0x8000, 0xffff, uint16(r.Uint32())}[r.IntN(11)])
	case 5:
		j := r.IntN(len(list))
		list[i], list[j] = list[j], list[i]
	default:
		word[r.IntN(4)] ^= 1 << r.IntN(8)
	}
}

// runPayload compiles a payload and calls it twice with the arguments that it asks for.
// An error is a finding.
func runPayload(b []byte, count func(int, int)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := parse(b, nil)
	if err != nil {
		return refusal(err)
	}
	specs := argsOf(c)
	total := 0
	for _, a := range specs {
		n, ok := tensor.Product(a.Sizes)
		if !ok || n > campaignMemory || total > campaignMemory/4 { // no program would bring such arguments within the limit
			return nil
		}
		total += n * a.DType.Size()
	}
	im, err := Backend{}.Compile(ctx, &delegate.Payload{Data: b, Args: specs, Limits: delegate.Limits{Scratch: campaignMemory, Memory: campaignMemory}})
	if err != nil {
		return refusal(err)
	}
	defer im.Close()
	count(1, 1)
	u, err := im.Unit(delegate.Instance{})
	if err != nil {
		return refusal(err)
	}
	defer u.Close()
	var values []*tensor.Value
	for _, a := range specs {
		v := tensor.TensorValue(tensor.New(a.DType, a.Sizes...))
		values = append(values, &v)
	}
	for range 2 {
		if err := u.Execute(ctx, values); err != nil {
			return refusal(err)
		}
		count(2, 1)
	}
	return nil
}

// refusal is nil for an error that a hostile payload may end with.
func refusal(err error) error {
	var e *delegate.Error
	if errors.As(err, &e) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return &campaign.Finding{Kind: "error", Message: err.Error()}
}
