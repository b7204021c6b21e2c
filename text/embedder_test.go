package text

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// encoderProgram opens a program of testdata, with a change of its description.
func encoderProgram(t testing.TB, name string, change func(m *pte.Method), options ...etrun.Option) *etrun.Program {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "encoders", name+".pte"))
	if err != nil {
		t.Fatal(err)
	}
	options = append(options, etrun.WithDelegates(all.Backends()...))
	p, err := etrun.Parse(data, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if change == nil {
		return p
	}
	spec := *p.Spec()
	spec.Methods = slices.Clone(spec.Methods)
	spec.Methods[0].Inputs = slices.Clone(spec.Methods[0].Inputs)
	change(&spec.Methods[0])
	if p, err = etrun.Parse(ptetest.Write(&spec, ptetest.Layout{}), options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// swap exchanges the mask and the token types.
func swap(m *pte.Method) { m.Inputs[1], m.Inputs[2] = m.Inputs[2], m.Inputs[1] }

func embedder(t testing.TB, p *etrun.Program, o EmbedOptions) *Embedder {
	t.Helper()
	e, err := LoadEmbedder(t.Context(), p, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func vectorsOf(t testing.TB, e *Embedder, texts [][]int) (list [][]float32) {
	t.Helper()
	err := e.EmbedTokens(t.Context(), texts, func(v []float32) error {
		list = append(list, slices.Clone(v))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// distance is the largest difference of two vectors.
func distance(a, b []float32) (most float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		most = max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

// hidden computes the vectors of a text's tokens with bert.pte, as the first of two rows.
func hidden(t *testing.T, p *etrun.Program, text []int) (rows [][]float32) {
	t.Helper()
	m, err := p.Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var in [3][]int64
	for i := range in {
		in[i] = make([]int64, 24)
	}
	for i, id := range text {
		in[0][i], in[1][i] = int64(id), 1
	}
	in[1][12] = 1 // the other text has one token
	for i := range in {
		if err := etrun.Set(m, i, in[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := etrun.Get[float32](m, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k := range text {
		rows = append(rows, slices.Clone(out[k*32:k*32+32]))
	}
	return rows
}

var encoderTexts = [][]int{{8, 144, 22, 107, 55}, {27, 22, 172, 185, 152, 29, 83, 178, 178, 179, 148, 9}, {35}, {148, 53, 141}}

// Vectors of tokens are pooled, whatever the other texts are, and the order of the inputs.
func TestEmbedderPools(t *testing.T) {
	reference := encoderProgram(t, "bert", nil)
	for _, change := range []func(*pte.Method){nil, swap} {
		p := encoderProgram(t, "bert", change)
		for _, pooling := range []Pooling{PoolMean, PoolCLS, PoolLast} {
			for _, normalize := range []bool{false, true} {
				e := embedder(t, p, EmbedOptions{Pooling: pooling, Normalize: normalize})
				if i := e.Info(); i.Context != 12 || i.Dimensions != 32 || i.Rows != 2 || i.Exact || i.Vocabulary != 200 {
					t.Errorf("info %+v", i)
				}
				for i, got := range vectorsOf(t, e, encoderTexts) {
					want := pooled(hidden(t, reference, encoderTexts[i]), pooling, normalize)
					if d := distance(got, want); d > 1e-5 {
						t.Errorf("swapped %v, %s, normalized %v, text %d: differs by %g", change != nil, pooling, normalize, i, d)
					}
				}
			}
		}
	}
}

func pooled(rows [][]float32, p Pooling, normalize bool) []float32 {
	switch p {
	case PoolCLS:
		rows = rows[:1]
	case PoolLast:
		rows = rows[len(rows)-1:]
	}
	v, length := make([]float32, len(rows[0])), float32(0)
	for d := range v {
		for _, r := range rows {
			v[d] += r[d] / float32(len(rows))
		}
		length += v[d] * v[d]
	}
	for d := range v {
		if normalize {
			v[d] /= float32(math.Sqrt(float64(length)))
		}
	}
	return v
}

// A program of dynamic sizes gets each text as it is. The expected vectors are PyTorch's.
func TestEmbedderOfTexts(t *testing.T) {
	data, err := os.ReadFile("testdata/encoders/sentence.f32")
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*32)
	if _, err := binary.Decode(data, binary.LittleEndian, want); err != nil {
		t.Fatal(err)
	}
	texts := [][]int{{42, 1, 46, 46}, {10, 19, 34, 42, 45}, {49, 36, 55}}
	for _, change := range []func(*pte.Method){nil, swap} {
		e := embedder(t, encoderProgram(t, "sentence", change), EmbedOptions{Pooling: PoolMean, Normalize: true})
		if i := e.Info(); i.Context != 16 || i.Pooling != PoolNone || len(e.Warnings()) != 1 {
			t.Errorf("info %+v, %q", i, e.Warnings())
		}
		for i, got := range vectorsOf(t, e, texts) {
			if d := distance(got, want[32*i:32*i+32]); d > 1e-5 {
				t.Errorf("text %d: differs by %g", i, d)
			}
		}
	}
}

// Without a mask there is no padding.
func TestEmbedderExact(t *testing.T) {
	e := embedder(t, encoderProgram(t, "albert", nil), EmbedOptions{Pooling: PoolMean, Context: 5})
	if i := e.Info(); i.Context != 10 || !i.Exact {
		t.Errorf("info %+v", i)
	}
	text := []int{58, 50, 66, 80, 105, 102, 51, 67, 55, 74}
	if v := vectorsOf(t, e, [][]int{text}); len(v[0]) != 32 {
		t.Errorf("%d dimensions", len(v[0]))
	}
	if p, ok := errors.AsType[*PromptError](e.Check(text[:9])); !ok || !p.Exact {
		t.Errorf("9 tokens: %v", p)
	}
}

// tableProgram returns a program whose vectors are the rows of a table of embeddings, without a mask.
func tableProgram(t testing.TB, dims, vocabulary int) *etrun.Program {
	t.Helper()
	p, err := etrun.Parse(ptetest.Transformer{Dim: dims, Context: 12, Vocabulary: vocabulary, Seed: 1}.Table())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Texts of any number of tokens need no mask if sizes vary.
func TestEmbedderWithoutMask(t *testing.T) {
	p := tableProgram(t, 16, 40)
	last, cls, mean := embedder(t, p, EmbedOptions{Pooling: PoolLast}), embedder(t, p, EmbedOptions{Pooling: PoolCLS}), embedder(t, p, EmbedOptions{Pooling: PoolMean})
	if i := last.Info(); i.Exact || i.Context != 12 || i.Vocabulary != 40 || i.Dimensions != 16 {
		t.Errorf("info %+v", i)
	}
	texts := [][]int{{3}, {5}, {3, 5}, {5, 3}, {5, 5, 3, 3}}
	rows := vectorsOf(t, mean, texts)
	middle := slices.Clone(rows[0])
	for d := range middle {
		middle[d] = (rows[0][d] + rows[1][d]) / 2
	}
	l, c := vectorsOf(t, last, texts), vectorsOf(t, cls, texts)
	for name, pair := range map[string][2][]float32{"last": {l[2], rows[1]}, "last of four": {l[4], rows[0]}, "first": {c[2], rows[0]}, "first of four": {c[4], rows[1]},
		"mean": {rows[2], middle}, "mean of four": {rows[4], middle}} {
		if d := distance(pair[0], pair[1]); d > 1e-6 {
			t.Errorf("%s: differs by %g", name, d)
		}
	}
}

// Each program that is no encoder, and each option that does not fit, is refused by name.
func TestEmbedderRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *pte.Method)
		o      EmbedOptions
		want   string
	}{
		{"bert", nil, EmbedOptions{}, "pooling"}, {"bert", nil, EmbedOptions{Pooling: "max"}, "max"},
		{"bert", nil, EmbedOptions{Pooling: PoolCLS, Method: "other"}, "other"}, {"bert", nil, EmbedOptions{Pooling: PoolCLS, Context: -1}, "-1"},
		{"bert", func(m *pte.Method) { m.Inputs = append(m.Inputs, m.Inputs[0]) }, EmbedOptions{}, "4 inputs"},
		{"bert", func(m *pte.Method) { m.Inputs = nil }, EmbedOptions{}, "0 inputs"},
		{"bert", func(m *pte.Method) { m.Outputs = nil }, EmbedOptions{}, "no outputs"},
		{"bert", func(m *pte.Method) { m.Outputs = m.Inputs[:1] }, EmbedOptions{}, "output 0"},
		{"../dynamic", nil, EmbedOptions{Pooling: PoolLast}, "input 1"},
	} {
		p := encoderProgram(t, c.name, c.change)
		if _, err := LoadEmbedder(t.Context(), p, nil, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %+v: got %v, want %q", c.name, c.o, err, c.want)
		}
	}
	if _, err := LoadEmbedder(t.Context(), tableProgram(t, 40, 40), nil, EmbedOptions{Pooling: PoolMean}); err == nil || !strings.Contains(err.Error(), "logits") {
		t.Errorf("logits: got %v", err)
	}
	e := embedder(t, encoderProgram(t, "bert", nil), EmbedOptions{Pooling: PoolMean, Context: 8})
	for _, c := range []struct {
		text []int
		want string
	}{{nil, "empty"}, {make([]int, 9), "9 tokens"}, {[]int{1, 200}, "200"}, {[]int{-1}, "-1"}} {
		err := e.EmbedTokens(t.Context(), [][]int{{1}, c.text}, func([]float32) error { t.Error("a vector"); return nil })
		if !errors.Is(err, etrun.ErrInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := e.Embed(t.Context(), "x"); !errors.Is(err, etrun.ErrInput) {
		t.Errorf("without a tokenizer: %v", err)
	}
}

// An embedder is used by many goroutines, which get the same vectors as one alone; some give up.
func TestEmbedderConcurrent(t *testing.T) {
	e := embedder(t, encoderProgram(t, "sentence", nil), EmbedOptions{Instances: 2})
	texts := [][]int{{42, 1}, {10, 19, 34, 42, 45}, {49}}
	want := vectorsOf(t, e, texts)
	var group sync.WaitGroup
	for k := range 8 {
		group.Go(func() {
			for range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				i := 0
				err := e.EmbedTokens(ctx, texts, func(v []float32) error {
					if distance(v, want[i]) != 0 {
						t.Errorf("text %d differs", i)
					}
					if i++; k == 0 {
						cancel()
					}
					return nil
				})
				if cancel(); k == 0 && !errors.Is(err, context.Canceled) || k > 0 && err != nil {
					t.Errorf("goroutine %d: %v", k, err)
				}
			}
		})
	}
	group.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.EmbedTokens(t.Context(), texts, nil); !errors.Is(err, etrun.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The files of sentence-transformers name the pooling, or are refused.
func TestSentenceOptions(t *testing.T) {
	const modules = `[{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
		{"type":"sentence_transformers.models.Normalize"}]`
	const bert = `{"max_seq_length":256,"do_lower_case":false}`
	mean := `{"word_embedding_dimension":384,"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":false,"include_prompt":true}`
	for _, c := range []struct {
		modules, pooling, bert, prompts string
		want                            string
	}{
		{modules, mean, bert, "", "{ mean true 256  0}"},
		{modules, `{"pooling_mode":"lasttoken"}`, "", `{"prompts":{"q":"query: "},"default_prompt_name":"q"}`, "{ last true 0 query:  0}"},
		{modules[:strings.LastIndexByte(modules, ',')] + "]", `{"pooling_mode_cls_token":true}`, "", `{"prompts":{}}`, "{ cls false 0  0}"},
		{`[]`, "", "", "", "{  false 0  0}"},
		{"", "", "", "", "not found"},
		{"{", "", "", "", "modules.json: invalid JSON: "}, {modules, "", "", "", "1_Pooling/config.json: no such file"}, {modules, "{", "", "", "1_Pooling/config.json"},
		{strings.ReplaceAll(modules, "Normalize", "Dense"), mean, "", "", "Dense"},
		{strings.ReplaceAll(modules, `"1_Pooling"`, `"../x"`), mean, "", "", "../x"},
		{modules, `{"pooling_mode_max_tokens":true}`, "", "", "pooling_mode_max_tokens"}, {modules, `{"pooling_mode":"max"}`, "", "", "max"},
		{modules, `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}`, "", "", "several"},
		{modules, `{"pooling_mode":"mean","include_prompt":false}`, "", "", "include_prompt"},
		{modules, mean, `{"do_lower_case":true}`, "", "do_lower_case"}, {modules, mean, `{"max_seq_length":-1}`, "", "config.json: max_seq_length -1"},
		{modules, mean, bert, `{"default_prompt_name":"x"}`, `"x"`},
	} {
		files := map[string]string{"modules.json": c.modules, "1_Pooling/config.json": c.pooling, "sentence_bert_config.json": c.bert,
			"config_sentence_transformers.json": c.prompts}
		o, found, err := SentenceOptions(func(name string) ([]byte, error) {
			if files[filepath.ToSlash(name)] == "" {
				return nil, os.ErrNotExist
			}
			return []byte(files[filepath.ToSlash(name)]), nil
		})
		got := fmt.Sprint(o)
		switch {
		case err != nil:
			got = err.Error()
			if _, ok := errors.AsType[*SettingsError](err); !ok {
				t.Errorf("%v is no SettingsError", err)
			}
		case !found:
			got = "not found"
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%.60s: got %s, want %s", c.modules, got, c.want)
		}
	}
}
