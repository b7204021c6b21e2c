package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// trainedTexts are the texts of a trained model in the folder that the variable CORPUS names.
type trainedTexts struct {
	Prompts  []struct{ Tokens []int64 }
	Programs map[string]struct {
		File  string
		Eager []struct{ Tokens []int64 }
	}
}

// textFigures are those of a program over the texts.
type textFigures struct {
	perplexity float64
	greedy     []int   // by text: tokens that have the largest logit
	next       [][]int // by text: the tokens that have the largest logits
}

func (f *textFigures) String() string {
	return fmt.Sprintf("perplexity %.4f, greedy %d", f.perplexity, f.greedy)
}

// right is the number of tokens that have the largest logit.
func (f *textFigures) right() (n int) {
	for _, k := range f.greedy {
		n += k
	}
	return n
}

// sameTokens counts by text the tokens that two runs choose alike.
func sameTokens(a, b *textFigures) []int {
	list := make([]int, len(a.next))
	for i := range list {
		for k, id := range a.next[i] {
			if b.next[i][k] == id {
				list[i]++
			}
		}
	}
	return list
}

// TestQuantizeText quantizes a trained model to 4 bits, and compares it with the exporter's own file of 4 bits: the perplexity of the texts
// that the model of floats writes, and how many of their tokens are the ones that the quantized model would write next. Both engines must
// choose the same tokens, but for 2 of 120.
func TestQuantizeText(t *testing.T) {
	root := os.Getenv("CORPUS")
	if root == "" {
		t.Skip("the variable CORPUS names the folder with text/expected.json; make texts sets it")
	}
	data, err := os.ReadFile(filepath.Join(root, "text", "expected.json"))
	must(t, err)
	var texts trainedTexts
	must(t, json.Unmarshal(data, &texts))
	file := func(name string) string { return filepath.Join(root, "text", texts.Programs[name].File) }
	exported := texts.figures(t, file("8da4w"), xnnpack.EngineGo)
	t.Logf("float: %v", texts.figures(t, file("xnnpack"), xnnpack.EngineGo))
	t.Logf("exporter's 8da4w: %v", exported)
	for _, c := range []struct {
		model string
		args  []string
	}{
		{"xnnpack", nil},
		{"xnnpack", []string{"--skip", "*:embedding:*"}},
		{"portable", nil},
	} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, out, notes := quantized(append([]string{file(c.model), "-o", to, "--scheme", "8da4w"}, c.args...)...)
		if code != 0 {
			t.Errorf("%s %q: exit code %d, %s", c.model, c.args, code, notes)
			continue
		}
		f := texts.figures(t, to, xnnpack.EngineGo)
		t.Logf("%s %q: %v\n%s", c.model, c.args, f, out)
		if f.perplexity > 1.05*exported.perplexity {
			t.Errorf("%s %q: perplexity %v, want at most 1.05 times the exporter's %v", c.model, c.args, f.perplexity, exported.perplexity)
		}
		if n, want := f.right(), exported.right()-2*len(f.greedy); n < want {
			t.Errorf("%s %q: %d tokens are those of the model of floats, want %d", c.model, c.args, n, want)
		}
		for i, same := range sameTokens(f, texts.figures(t, to, xnnpack.EngineNative)) {
			if t.Logf("text %d: %d tokens of %d are the same with both engines", i, same, len(f.next[i])); same < len(f.next[i])-2 {
				t.Errorf("%s %q, text %d: %d of %d tokens are the same with both engines", c.model, c.args, i, same, len(f.next[i]))
			}
		}
	}
}

// figures runs a program over the texts, token by token.
func (x *trainedTexts) figures(t *testing.T, path string, engine xnnpack.Engine) *textFigures {
	p, err := etrun.Open(path, etrun.WithDelegates(xnnpack.Backend{Engine: engine}))
	must(t, err)
	defer p.Close()
	m, err := p.Load(context.Background(), "forward")
	must(t, err)
	defer m.Close()
	f, loss, count := &textFigures{}, 0.0, 0
	for i, e := range x.Programs["xnnpack"].Eager {
		text, right, chosen := append(slices.Clone(x.Prompts[i].Tokens), e.Tokens...), 0, []int(nil)
		for at, next := range text[1:] {
			must(t, m.SetValue(0, tensor.TensorValue(tensor.Of([]int64{text[at]}, 1, 1))))
			must(t, m.SetValue(1, tensor.TensorValue(tensor.Of([]int64{int64(at)}, 1))))
			must(t, m.Execute(context.Background()))
			y, err := m.Output(0)
			must(t, err)
			logits := tensor.View[float32](y.Tensor.Data)
			loss, count = loss+surprise(logits, int(next)), count+1
			if at+1 < len(x.Prompts[i].Tokens) {
				continue
			}
			best := slices.Index(logits, slices.Max(logits))
			if chosen = append(chosen, best); best == int(next) {
				right++
			}
		}
		f.greedy, f.next = append(f.greedy, right), append(f.next, chosen)
	}
	f.perplexity = math.Exp(loss / float64(count))
	return f
}

// surprise is the negative logarithm of a token's probability.
func surprise(logits []float32, token int) float64 {
	sum, most := 0.0, slices.Max(logits)
	for _, x := range logits {
		sum += math.Exp(float64(x - most))
	}
	return math.Log(sum) - float64(logits[token]-most)
}
