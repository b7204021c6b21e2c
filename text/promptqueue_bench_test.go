package text

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
)

// measuredProgram is a transformer, or with CORPUS a model of 10 layers of that folder.
func measuredProgram(b *testing.B) *etrun.Program {
	b.Helper()
	corpus := os.Getenv("CORPUS")
	if corpus == "" {
		return transformer{Layers: 4, Dim: 256, Heads: 4, Vocabulary: 1024, Context: 600, Seed: 1}.program(b)
	}
	path := filepath.Join(corpus, "fresh", "smollm_10l_8da4w_opt", "xnnpack.pte")
	p, err := etrun.OpenSource(context.Background(), etrun.File(path), etrun.WithDelegates(all.Backends()...))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}

// measuredPrompt has 500 tokens, the first of which is i.
func measuredPrompt(i int) []int {
	prompt := make([]int, 500)
	for k := range prompt {
		prompt[k] = (7*k + 3*i) % 200
	}
	prompt[0] = i
	return prompt
}

// BenchmarkPromptParts computes a prompt in parts of several sizes: see defaultChunk.
func BenchmarkPromptParts(b *testing.B) {
	for _, n := range []int{32, 64, 128, 256, 512} {
		b.Run(fmt.Sprintf("%d tokens", n), func(b *testing.B) {
			m, err := Load(context.Background(), measuredProgram(b), nil, WithChunk(n))
			if err != nil {
				b.Fatal(err)
			}
			s := sessionOf(b, m)
			for i := 0; b.Loop(); i++ {
				for _, err := range s.GenerateTokens(context.Background(), measuredPrompt(i%200), Options{MaxTokens: 1}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkTextsBesidePrompts measures the time between the tokens of four texts while prompts come in. An operation is a prompt, or
// without prompts 100 tokens of a text.
func BenchmarkTextsBesidePrompts(b *testing.B) {
	for _, n := range []int{0, 1, 4, 16} {
		b.Run(fmt.Sprintf("%d prompts", n), func(b *testing.B) {
			m, err := Load(context.Background(), measuredProgram(b), nil)
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var texts, prompts sync.WaitGroup
			gaps := make([][]time.Duration, 4)
			for i := range gaps {
				s := sessionOf(b, m)
				texts.Go(func() { gaps[i] = gapsOf(ctx, s, i) })
			}
			operations := make(chan int)
			for range n {
				s := sessionOf(b, m)
				prompts.Go(func() {
					for i := range operations {
						for _, err := range s.GenerateTokens(context.Background(), measuredPrompt(i%200), Options{MaxTokens: 1}) {
							if err != nil {
								b.Error(err)
							}
						}
					}
				})
			}
			if n == 0 {
				s := sessionOf(b, m)
				prompts.Go(func() {
					for range operations {
						for range s.GenerateTokens(context.Background(), []int{1}, Options{MaxTokens: 100, IgnoreEOS: true}) {
							continue
						}
					}
				})
			}
			for i := range b.N {
				operations <- i
			}
			close(operations)
			prompts.Wait()
			cancel()
			texts.Wait()
			list := slices.Sorted(slices.Values(slices.Concat(gaps...)))
			for name, at := range map[string]int{"median": len(list) / 2, "p99": len(list) * 99 / 100} {
				b.ReportMetric(float64(list[at].Microseconds())/1000, name+"-ms/token")
			}
		})
	}
}

// gapsOf returns the times between the tokens of texts until ctx ends.
func gapsOf(ctx context.Context, s *Session, i int) (list []time.Duration) {
	for ctx.Err() == nil {
		_ = s.Reset() // nothing else uses it
		last := time.Now()
		for p := range s.GenerateTokens(ctx, []int{i, i + 1}, Options{MaxTokens: 300, IgnoreEOS: true}) {
			if len(p.Tokens) > 0 {
				list, last = append(list, time.Since(last)), time.Now()
			}
		}
	}
	return list
}
