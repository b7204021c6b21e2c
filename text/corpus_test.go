package text

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// The corpus has a trained model on several exports, with the texts of PyTorch.
type corpus struct {
	folder  string
	Prompts []struct {
		Text   string
		Tokens []int
	}
	Programs map[string]struct {
		File  string
		Eager []eager
	}
}

// eager is what PyTorch generates from a prompt: tokens, their logits, and the lead of each over the
// second.
type eager struct {
	Tokens  []int
	Text    string
	Logits  []float64 `json:"top_logits"`
	Margins []float64
}

func openCorpus(t testing.TB) *corpus {
	t.Helper()
	root := os.Getenv("CORPUS")
	if root == "" {
		t.Skip("the variable CORPUS names the folder with text/expected.json; make texts sets it")
	}
	data, err := os.ReadFile(filepath.Join(root, "text", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := &corpus{folder: filepath.Join(root, "text")}
	if err := json.Unmarshal(data, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// model loads a program of the corpus on an engine of XNNPACK.
func (c *corpus) model(t testing.TB, file string, engine xnnpack.Engine) *Model {
	t.Helper()
	p, err := etrun.Open(filepath.Join(c.folder, file), etrun.WithDelegates(xnnpack.Backend{Engine: engine}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	tok, err := tokenizer.Open(filepath.Join(c.folder, "tok512.bin"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(context.Background(), p, tok)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCorpus compares texts with PyTorch's: float32 exactly, quantized step by step.
func TestCorpus(t *testing.T) {
	c := openCorpus(t)
	for name, p := range c.Programs {
		for _, engine := range xnnpack.Engines {
			t.Run(name+"/"+string(engine), func(t *testing.T) {
				s := sessionOf(t, c.model(t, p.File, engine))
				for i, want := range p.Eager {
					prompt := c.Prompts[i]
					if ids, err := s.model.Encode(prompt.Text); !slices.Equal(ids, prompt.Tokens) || err != nil {
						t.Errorf("prompt %d: tokens %d, %v, want %d", i, ids, err, prompt.Tokens)
					}
					if strings.Contains(name, "8da4w") {
						compareSteps(t, s, prompt.Tokens, want)
						continue
					}
					ids, text, last, err := collect(s.Generate(context.Background(), prompt.Text, Options{MaxTokens: len(want.Tokens)}))
					if !slices.Equal(ids, want.Tokens) || prompt.Text+text != want.Text || last.Finish != FinishLength || err != nil {
						t.Errorf("prompt %d: got %q, %q, %v, want %q", i, prompt.Text+text, last.Finish, err, want.Text)
					}
				}
			})
		}
	}
}

// compareSteps gives PyTorch's tokens to the model: the chosen logits agree within 0.4, and the
// highest one wherever its lead exceeds 0.5, as the corpus says.
func compareSteps(t *testing.T, s *Session, prompt []int, want eager) {
	t.Helper()
	text, same := slices.Clone(prompt), 0
	for step, id := range want.Tokens {
		if _, err := s.extend(context.Background(), text); err != nil {
			t.Fatal(err)
		}
		logits := s.last()
		if d := math.Abs(float64(logits[id]) - want.Logits[step]); d > 0.4 {
			t.Errorf("step %d: the logit of token %d is %v, want %v", step, id, logits[id], want.Logits[step])
		}
		if got := argmax(logits); got == id {
			same++
		} else if want.Margins[step] > 0.5 {
			t.Errorf("step %d: got token %d, want %d with a lead of %v", step, got, id, want.Margins[step])
		}
		text = append(text, id)
	}
	t.Logf("%d of %d tokens are the same", same, len(want.Tokens))
}

// TestCorpusContext fills the context to its end, and asks for one more.
func TestCorpusContext(t *testing.T) {
	c := openCorpus(t)
	ctx := context.Background()
	for name, p := range c.Programs {
		s := sessionOf(t, c.model(t, p.File, xnnpack.EngineAuto))
		n := s.model.info.Context
		long := c.Prompts[0].Tokens
		ids, _, last, err := collect(s.GenerateTokens(ctx, long, Options{IgnoreEOS: true}))
		if len(ids) != n-len(long)+1 || last.Finish != FinishContext || err != nil {
			t.Errorf("%s: %d tokens, %q, %v, want %d", name, len(ids), last.Finish, err, n-len(long)+1)
		}
		full := append(slices.Clone(long), ids...) // one more than the context
		for _, prompt := range [][]int{full[:n-1], full[:n]} {
			got, _, last, err := collect(s.GenerateTokens(ctx, prompt, Options{IgnoreEOS: true}))
			if want := full[len(prompt):]; !slices.Equal(got, want) || last.Finish != FinishContext || err != nil {
				t.Errorf("%s, a prompt of %d: got %d, %q, %v, want %d", name, len(prompt), got, last.Finish, err, want)
			}
		}
		_, _, _, err = collect(s.GenerateTokens(ctx, full, Options{}))
		if !is[*PromptError](err) || !strings.Contains(err.Error(), fmt.Sprint(n)) || !strings.Contains(err.Error(), fmt.Sprint(n+1)) {
			t.Errorf("%s: a prompt of %d: %v", name, len(full), err)
		}
	}
}

// TestCorpusLookup compares texts with and without drafts, of the portable program changed to return
// the logits of all tokens.
func TestCorpusLookup(t *testing.T) {
	c := openCorpus(t)
	s := newSession(t, c.allLogits(t))
	for i, e := range c.Programs["portable"].Eager {
		got, _, _, err := collect(s.GenerateTokens(context.Background(), c.Prompts[i].Tokens, Options{MaxTokens: len(e.Tokens)}))
		if !slices.Equal(got, e.Tokens) || err != nil {
			t.Errorf("prompt %d: got %d, %v, want %d", i, got, err, e.Tokens)
		}
		story := append(slices.Clone(c.Prompts[i].Tokens), e.Tokens...)
		for _, prompt := range [][]int{c.Prompts[i].Tokens, append(story, c.Prompts[i].Tokens...)} { // from the beginning, and again
			o := Options{IgnoreEOS: true}
			want, _, _, err := collect(s.GenerateTokens(context.Background(), prompt, o))
			if err != nil {
				t.Fatal(err)
			}
			o.Lookup = 8
			got, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, o))
			if !slices.Equal(got, want) || err != nil {
				t.Errorf("prompt %d of %d tokens, with drafts: got %d, %v, want %d", i, len(prompt), got, err, want)
			}
			t.Logf("prompt of %d tokens: %d generated, %d of %d drafted came", len(prompt), len(got), last.Stats.Accepted, last.Stats.Drafted)
		}
	}
}

// allLogits opens the portable program with the selection of the last token replaced by a view, so
// that the classifier computes the logits of all tokens.
func (c *corpus) allLogits(t testing.TB) *etrun.Program {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.folder, c.Programs["portable"].File))
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := &p.Methods[slices.IndexFunc(p.Methods, func(m pte.Method) bool { return m.Name == "forward" })]
	list := m.Chains[0].Instructions
	operator := func(i int) string {
		if list[i].Kind != pte.KernelCall {
			return ""
		}
		return m.Operators[list[i].Index].Name
	}
	last := len(list) - 1
	for operator(last) != "aten::select_copy" {
		last--
	}
	width := m.Values[list[last].Args[0]].Tensor.Sizes[1]
	rows := make(map[int]bool)
	for i := last; i < len(list) && operator(i) != "aten::copy_"; i++ {
		rows[list[i].Args[len(list[i].Args)-1]] = true
	}
	for id := range rows {
		if v := m.Values[id].Tensor; v != nil && v.Sizes[0] == 1 && v.Storage == pte.Planned {
			v.Sizes[0], v.Dynamism = width, tensor.DynamicBound
			arena := &m.Arenas[v.Arena]
			v.Offset = (arena.Size + 63) / 64 * 64
			arena.Size = v.Offset + v.NBytes()
		}
	}
	from, to := list[last].Args[0], list[last].Args[len(list[last].Args)-1]
	sizes := pte.Value{Kind: tensor.KindIntList}
	for _, n := range []int64{-1, int64(m.Values[to].Tensor.Sizes[1])} {
		sizes.Items = append(sizes.Items, len(m.Values))
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindInt, Int: n})
	}
	m.Values = append(m.Values, sizes)
	view := slices.IndexFunc(m.Operators, func(o pte.Operator) bool { return o.Name == "executorch_prim::et_view" })
	list[last].Index, list[last].Args = view, []int{from, len(m.Values) - 1, to}
	prog, err := etrun.Parse(ptetest.Write(p, ptetest.Layout{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return prog
}

// BenchmarkCorpusLookup measures drafts for a story that is told again.
func BenchmarkCorpusLookup(b *testing.B) {
	c := openCorpus(b)
	p := c.allLogits(b)
	e := c.Programs["portable"].Eager[0]
	again := append(append(slices.Clone(c.Prompts[0].Tokens), e.Tokens...), c.Prompts[0].Tokens...)
	for _, lookup := range []int{0, 2, 4, 8, 16} {
		b.Run(fmt.Sprint("drafts of ", lookup), func(b *testing.B) {
			benchmarkLookup(b, newSession(b, p), again, Options{MaxTokens: 120, Lookup: lookup, IgnoreEOS: true})
		})
	}
}

// TestCorpusSessions runs sessions of a trained model at once: see TestRandomSessions.
func TestCorpusSessions(t *testing.T) {
	c := openCorpus(t)
	p := c.Programs["xnnpack"]
	m := c.model(t, p.File, xnnpack.EngineAuto)
	var wishes []wish
	for i, e := range p.Eager {
		for _, cut := range []int{0, 1, 7, 40} {
			text := append(slices.Clone(c.Prompts[i].Tokens), e.Tokens[:cut]...)
			wishes = append(wishes, wish{text, Options{MaxTokens: 30}, e.Tokens[cut : cut+30]})
		}
	}
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			if err := randomSession(m, wishes, rand.New(rand.NewPCG(uint64(i), 8)), 12); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// BenchmarkCorpus measures prompts of 256 tokens and texts of 128.
func BenchmarkCorpus(b *testing.B) {
	c := openCorpus(b)
	for _, file := range []string{"stories260k_portable.pte", "stories260k_xnnpack.pte", "stories260k_8da4w.pte",
		"../fresh/smollm_10l_8da4w_opt/xnnpack.pte"} {
		b.Run(strings.TrimSuffix(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), ".pte"), func(b *testing.B) {
			p, err := etrun.Open(filepath.Join(c.folder, file), etrun.WithDelegates(xnnpack.Backend{}))
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			s := newSession(b, p)
			prompt := make([]int, 256)
			for i := range prompt {
				prompt[i] = 3 + i*7%500
			}
			var sum Stats
			for b.Loop() {
				s.Reset()
				_, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, Options{MaxTokens: 128, IgnoreEOS: true}))
				if err != nil {
					b.Fatal(err)
				}
				sum.Prompt, sum.Prefill = sum.Prompt+last.Stats.Prompt, sum.Prefill+last.Stats.Prefill
				sum.Generated, sum.Decode = sum.Generated+last.Stats.Generated-1, sum.Decode+last.Stats.Decode
			}
			b.ReportMetric(float64(sum.Prompt)/sum.Prefill.Seconds(), "prefill-tokens/s")
			b.ReportMetric(float64(sum.Generated)/sum.Decode.Seconds(), "decode-tokens/s")
		})
	}
}
