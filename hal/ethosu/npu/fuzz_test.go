package npu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
	"github.com/etrun-go/etrun/internal/cputime"
)

// sample is a command stream of the test archives with its constants and arena.
type sample struct {
	config  isa.Config
	stream  []byte
	weights []byte
	scratch int
}

// samples reads the small payloads of one archive.
func samples(t testing.TB, archive string) (out []sample) {
	t.Helper()
	for _, v := range ethosutest.Vectors(t, archive) {
		if len(v.Payload()) > 10000 {
			continue
		}
		p, err := isa.ParsePayload(v.Block("cmd_data"))
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		out = append(out, sample{p.Config, p.Stream, v.Block("weight_data"), int(binary.LittleEndian.Uint32(v.Block("scratch_size")))})
	}
	return out
}

// guard is the size of the bytes before and after each region.
const guard = 256

// guarded returns n bytes between two guards with a pattern.
func guarded(n int, fill byte) (all, region []byte) {
	all = bytes.Repeat([]byte{fill}, n+2*guard)
	return all, all[guard : guard+n : guard+n]
}

// FuzzStream runs arbitrary streams on guarded memory. Nothing outside the writable regions may
// change, and a canceled context ends the run soon.
func FuzzStream(f *testing.F) {
	for _, archive := range []string{"u55-128", "u65-512", "u85-256", "u85-2048"} {
		for _, s := range samples(f, archive) {
			f.Add(s.config.Word, s.stream, s.weights, uint16(min(s.scratch, 1<<16-1)))
		}
	}
	pool := cpu.NewPool(2)
	f.Fuzz(func(t *testing.T, word uint32, stream, constants []byte, scratch uint16) {
		c, err := isa.ParseConfig(word, 0)
		if err != nil {
			return
		}
		p, err := npu.Decode(c, stream)
		if err != nil {
			checkError(t, err)
			return
		}
		checkCosts(t, p)
		const fill = 0xa5
		all0, mem0 := guarded(len(constants), fill)
		copy(mem0, constants)
		all1, mem1 := guarded(int(scratch), fill)
		all2, mem2 := guarded(1<<12, fill)
		n, err := p.Bind(&isa.Regions{{Kind: isa.Constants, Size: int64(len(mem0)), Data: mem0},
			{Kind: isa.Scratch, Size: int64(len(mem1))}, {Kind: isa.Fast, Size: int64(len(mem2))}})
		if err != nil {
			checkError(t, err)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		start := cputime.Process()
		if err := n.NewRun(pool).Execute(ctx, &npu.Memory{mem0, mem1, mem2}, nil); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			checkError(t, err)
		}
		if d := cputime.Process() - start; d > 3*time.Second {
			t.Errorf("%v after the context's 100 ms", d)
		}
		if !bytes.Equal(mem0, constants) {
			t.Error("constants changed")
		}
		for i, all := range [][]byte{all0, all1, all2} {
			band := bytes.Repeat([]byte{fill}, guard)
			if !bytes.Equal(all[:guard], band) || !bytes.Equal(all[len(all)-guard:], band) {
				t.Errorf("region %d: write outside of it", i)
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *isa.Error
	if !errors.As(err, &e) || !errors.Is(err, isa.ErrMalformed) && !errors.Is(err, isa.ErrUnsupported) {
		t.Errorf("error %v, want an *isa.Error with a reason", err)
	}
}

// TestMutations changes single words of real streams: the fuzz target on a fixed list.
func TestMutations(t *testing.T) {
	values := []uint32{0, 1, 0x7fff, 0xffff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff}
	for _, archive := range []string{"u55-128", "u85-256"} {
		for _, s := range samples(t, archive)[:20] {
			for at := 0; at < len(s.stream); at += 4 * 3 {
				stream := bytes.Clone(s.stream)
				v := values[at/4%len(values)]
				if at/4%2 == 0 { // the parameter only
					v = binary.LittleEndian.Uint32(stream[at:])&0xffff | v<<16
				}
				binary.LittleEndian.PutUint32(stream[at:], v)
				run(t, s, stream)
			}
		}
	}
}

func run(t *testing.T, s sample, stream []byte) {
	t.Helper()
	p, err := npu.Decode(s.config, stream)
	if err != nil {
		checkError(t, err)
		return
	}
	mem := npu.Memory{s.weights, make([]byte, s.scratch), make([]byte, 4096)}
	n, err := p.Bind(&isa.Regions{{Kind: isa.Constants, Size: int64(len(s.weights)), Data: s.weights},
		{Kind: isa.Scratch, Size: int64(s.scratch)}, {Kind: isa.Fast, Size: 4096}})
	if err != nil {
		checkError(t, err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := n.NewRun(nil).Execute(ctx, &mem, nil); err != nil {
		checkError(t, err)
	}
}

// checkCosts checks that the estimates of a program are finite and ordered.
func checkCosts(t *testing.T, p *npu.Program) {
	t.Helper()
	m := &npu.Timings{{Rate: 1.875, Latency: 500, Burst: 128}, {Rate: 8, Latency: 32, Burst: 32}}
	costs := p.Costs(m)
	for i, s := range npu.Timeline(costs, m) {
		c := &costs[i]
		if !(s.Begin >= 0 && s.End >= s.Begin && s.End <= math.MaxFloat64) || c.Cycles < 0 || c.MACs < 0 {
			t.Fatalf("word %d, %s: %v, %d cycles, %d MACs", c.Word, c.Name, s, c.Cycles, c.MACs)
		}
	}
}
