package text

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// fake is a language model whose logits are a hash of all tokens so far: one token of the cache
// that is wrong changes everything that follows.
type fake struct {
	width, context, vocabulary int
	dynamic                    bool
	positions                  int    // size of the position, 0 for none
	scalar                     bool   // the position has no dimensions
	cache                      string // "", "positions" or "count"
	all                        bool
	flat                       bool // sizes without a batch
	tokens, logits             tensor.DType
	meta                       map[string]any // int, bool or []int
	fault                      func(text []int64, logits []float32) error
	calls                      *atomic.Int64 // of the method

	// Of a fake that takes rows of numbers, whose first one is the token: their number of numbers, type and rank.
	rows    int
	rowType tensor.DType
	rank    int
	embeds  int // tokens of a call of token_embedding
}

func fakeDefault() fake {
	return fake{width: 7, context: 24, vocabulary: 64, dynamic: true, positions: 1, cache: "positions",
		tokens: tensor.Int64, logits: tensor.Float32, calls: new(atomic.Int64),
		meta: map[string]any{"get_max_seq_len": 24, "get_vocab_size": 64, "use_kv_cache": true}}
}

// fakeLogits are the logits after a text. All types of logits store them exactly.
func fakeLogits(text []int64, vocabulary int) []float32 {
	h := uint64(14695981039346656037)
	for _, id := range text {
		h = (h ^ uint64(id)) * 1099511628211
		h ^= h >> 29
	}
	logits := make([]float32, vocabulary)
	for v := range logits {
		x := (h + uint64(v)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
		logits[v] = float32(x>>57)/16 - 4 // ties occur
	}
	return logits
}

// fakeGreedy is the expected continuation of a text.
func fakeGreedy(prompt []int, vocabulary, n int) (ids []int) {
	var text []int64
	for _, id := range prompt {
		text = append(text, int64(id))
	}
	for range n {
		id := argmax(fakeLogits(text, vocabulary))
		ids, text = append(ids, id), append(text, int64(id))
	}
	return ids
}

func integers(t *tensor.Tensor) (list []int64) {
	if t.DType.IsFloat() { // rows
		n := t.Sizes[t.Rank()-1]
		for i, x := range float32s(t, nil) {
			if i%n == 0 {
				list = append(list, int64(x))
			}
		}
		return list
	}
	if t.DType == tensor.Int64 {
		return slices.Clone(tensor.Data[int64](t))
	}
	for _, x := range tensor.Data[int32](t) {
		list = append(list, int64(x))
	}
	return list
}

// operators are those of the fake's method.
func (f *fake) operators() []kernels.Op {
	whole := func(_ *kernels.Ctx, a kernels.Args) error {
		return f.write(a.Tensor(1), nil, integers(a.Tensor(0)))
	}
	cached := func(_ *kernels.Ctx, a kernels.Args) error {
		at := integers(a.Tensor(1))
		for i, p := range at {
			if p != at[0]+int64(i) || len(at) > 1 && len(at) != len(integers(a.Tensor(0))) {
				return fmt.Errorf("positions %d for %d tokens", at, len(integers(a.Tensor(0))))
			}
		}
		return f.step(a.Tensor(3), integers(a.Tensor(0)), tensor.Data[int64](a.Tensor(2)), int(at[0]))
	}
	counted := func(c *kernels.Ctx, a kernels.Args) error {
		count := tensor.Data[int64](a.Tensor(2))
		tokens := integers(a.Tensor(0))
		err := f.step(a.Tensor(3), tokens, tensor.Data[int64](a.Tensor(1)), int(count[0]))
		count[0] += int64(len(tokens)) // also after an error: the state is then undefined
		return err
	}
	return []kernels.Op{
		{Schema: "test::whole.out(Tensor tokens, *, Tensor(a!) out)", Func: whole},
		{Schema: "test::cached.out(Tensor tokens, Tensor position, Tensor(b!) cache, *, Tensor(a!) out)", Func: cached},
		{Schema: "test::embed.out(Tensor tokens, *, Tensor(a!) out)", Func: f.embed},
		{Schema: "test::eye.out(Tensor pixels, *, Tensor(a!) out)", Func: f.eye},
		{Schema: "test::counted.out(Tensor tokens, Tensor(b!) cache, Tensor(c!) count, *, Tensor(a!) out)", Func: counted},
	}
}

// step stores tokens in the cache, and writes the logits.
func (f *fake) step(out *tensor.Tensor, tokens, cache []int64, at int) error {
	if at+len(tokens) > len(cache) {
		return fmt.Errorf("%d tokens at position %d, the cache has %d", len(tokens), at, len(cache))
	}
	for i, id := range tokens {
		cache[at+i] = id + 1
	}
	text := make([]int64, at)
	for i := range text {
		if text[i] = cache[i] - 1; text[i] < 0 {
			return fmt.Errorf("position %d has not been computed", i)
		}
	}
	return f.write(out, text, tokens)
}

// write writes the logits of tokens that follow others.
func (f *fake) write(out *tensor.Tensor, before, tokens []int64) error {
	f.calls.Add(1)
	text, rows := append(slices.Clone(before), tokens...), 1
	if f.all {
		rows = len(tokens)
		sizes := []int{1, rows, f.vocabulary}
		if f.flat {
			sizes = sizes[1:]
		}
		if err := out.Resize(sizes); err != nil {
			return err
		}
	}
	for r := range rows {
		upto := text[:len(text)-rows+r+1]
		logits := fakeLogits(upto, f.vocabulary)
		if f.fault != nil {
			if err := f.fault(upto, logits); err != nil {
				return err
			}
		}
		for v, x := range logits {
			switch at := r*f.vocabulary + v; out.DType {
			case tensor.Float32:
				tensor.Data[float32](out)[at] = x
			case tensor.Float16:
				tensor.Data[uint16](out)[at] = tensor.FloatToHalf(x)
			default:
				tensor.Data[uint16](out)[at] = tensor.FloatToBFloat(x)
			}
		}
	}
	return nil
}

// method describes the fake's method.
func (f *fake) method() pte.Method {
	m := pte.Method{Name: "forward", Operators: []pte.Operator{
		{Name: "test::whole", Overload: "out"}, {Name: "test::cached", Overload: "out"}, {Name: "test::counted", Overload: "out"}}}
	at := int64(0)
	add := func(d tensor.DType, dynamic bool, sizes ...int) int {
		t := &pte.Tensor{DType: d, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Planned, Offset: at}
		if dynamic {
			t.Dynamism = tensor.DynamicBound
		}
		at += (t.NBytes() + 63) / 64 * 64
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: t})
		return len(m.Values) - 1
	}
	batch := []int{1}
	if f.flat {
		batch = nil
	}
	tokens := -1
	if f.rows > 0 {
		m.Name = methodDecoder
		tokens = add(f.rowType, f.dynamic, []int{1, f.width, f.rows}[3-f.rank:]...)
	} else {
		tokens = add(f.tokens, f.dynamic, append(slices.Clone(batch), f.width)...)
	}
	m.Inputs = []int{tokens}
	args := []int{tokens}
	if f.positions > 0 {
		sizes := []int{f.positions}
		if f.scalar {
			sizes = nil
		}
		position := add(f.tokens, f.positions > 1 && f.dynamic, sizes...)
		m.Inputs = append(m.Inputs, position)
		if f.cache == "positions" {
			args = append(args, position)
		}
	}
	if f.cache != "" {
		args = append(args, add(tensor.Int64, false, 1, 1, f.context, 1))
	}
	if f.cache == "count" {
		args = append(args, add(tensor.Int64, false, 1))
	}
	sizes := append(slices.Clone(batch), f.vocabulary)
	if f.all {
		sizes = append(slices.Clone(batch), f.width, f.vocabulary)
	}
	out := add(f.logits, f.all && f.dynamic, sizes...)
	m.Outputs, m.Arenas = []int{out}, []pte.Arena{{Size: at}}
	op := map[string]int{"": 0, "positions": 1, "count": 2}[f.cache]
	m.Chains = []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Index: op, Args: append(args, out, out)}}}}
	return m
}

// constantMethod is a metadata method.
func constantMethod(name string, value any) pte.Method {
	m := pte.Method{Name: name, Chains: []pte.Chain{{}}}
	add := func(v pte.Value) {
		m.Outputs, m.Values = append(m.Outputs, len(m.Values)), append(m.Values, v)
	}
	switch x := value.(type) {
	case int:
		add(pte.Value{Kind: tensor.KindInt, Int: int64(x)})
	case bool:
		add(pte.Value{Kind: tensor.KindBool, Bool: x})
	case string:
		add(pte.Value{Kind: tensor.KindString, Long: &pte.Long{Str: x}})
	case []int: // as the exporter writes lists
		for _, n := range x {
			add(pte.Value{Kind: tensor.KindInt, Int: int64(n)})
		}
	case []int64:
		add(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{len(x)}, DimOrder: []uint8{0},
			Storage: pte.Constant, Data: tensor.BytesOf(x)}})
	}
	return m
}

func (f *fake) program(t testing.TB) *etrun.Program {
	t.Helper()
	methods := []pte.Method{f.method()}
	if f.rows > 0 {
		methods = append(methods, f.partMethods()...)
	}
	for name, value := range f.meta {
		methods = append(methods, constantMethod(name, value))
	}
	p, err := etrun.Parse(ptetest.Write(&pte.Program{Methods: methods}, ptetest.Layout{}), etrun.WithOperators(f.operators()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func (f *fake) load(t testing.TB, tok tokenizer.Tokenizer, options ...Option) *Model {
	t.Helper()
	m, err := Load(context.Background(), f.program(t), tok, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sessionOf(t testing.TB, m *Model) *Session {
	t.Helper()
	s, err := m.NewSession(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// conventions are the programs that Load accepts, changed from fakeDefault.
var conventions = []struct {
	name  string
	cache Cache
	make  func(*fake)
}{
	{"dynamic", CachePositions, func(f *fake) {}},
	{"dynamic, all logits", CachePositions, func(f *fake) { f.all = true }},
	{"dynamic, flat", CachePositions, func(f *fake) { f.flat, f.all = true, true }},
	{"dynamic, a position per token", CachePositions, func(f *fake) { f.positions = f.width }},
	{"int32, float16", CachePositions, func(f *fake) { f.tokens, f.logits = tensor.Int32, tensor.Float16 }},
	{"bfloat16, all logits", CachePositions, func(f *fake) { f.logits, f.all = tensor.BFloat16, true }},
	{"static", CachePositions, func(f *fake) { f.dynamic, f.width = false, 1 }},
	{"static, scalar position", CachePositions, func(f *fake) { f.dynamic, f.width, f.scalar = false, 1, true }},
	{"static chunks", CachePositions, func(f *fake) { f.dynamic, f.width, f.all = false, 5, true }},
	{"static chunks, a position per token", CachePositions, func(f *fake) { f.dynamic, f.width, f.positions, f.all = false, 5, 5, true }},
	{"counted", CacheRecurrent, func(f *fake) { f.cache, f.positions = "count", 0 }},
	{"counted, with a position", CacheRecurrent, func(f *fake) { f.cache = "count" }},
	{"counted, one token", CacheRecurrent, func(f *fake) { f.cache, f.dynamic, f.width = "count", false, 1 }},
	{"no cache", CacheNone, func(f *fake) { f.cache, f.positions, f.width = "", 0, 24 }},
	{"no cache, all logits", CacheNone, func(f *fake) { f.cache, f.positions, f.width, f.all = "", 0, 24, true }},
	{"no cache, static", CacheNone, func(f *fake) { f.cache, f.positions, f.width, f.all, f.dynamic = "", 0, 24, true, false }},
	{"no cache, no metadata", CacheNone, func(f *fake) { f.cache, f.positions, f.width, f.all, f.dynamic, f.meta = "", 0, 24, true, false, nil }},
	{"no cache, but state", CacheNone, func(f *fake) {
		f.cache, f.positions, f.width, f.meta = "count", 0, 24, map[string]any{"use_kv_cache": false, "get_max_seq_len": 100}
	}},
	{"no metadata", CachePositions, func(f *fake) { f.meta = nil }},
}

func conventionOf(name string) fake {
	f := fakeDefault()
	for _, c := range conventions {
		if c.name == name {
			c.make(&f)
		}
	}
	return f
}

// TestConventions generates with every convention: short and long prompts, reused and changed
// prefixes, up to the end of the context.
func TestConventions(t *testing.T) {
	ctx := context.Background()
	for _, c := range conventions {
		t.Run(c.name, func(t *testing.T) {
			f := conventionOf(c.name)
			s := sessionOf(t, f.load(t, nil))
			info := s.Model().Info()
			if info.Cache != c.cache || info.Context != 24 || info.Vocabulary != 64 || info.AllLogits != f.all {
				t.Errorf("got %+v", info)
			}
			long := fakeGreedy([]int{5}, 64, 23)
			for _, prompt := range [][]int{{1}, {1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 2, 9}, {1, 2, 9, 4}, {1, 2, 9, 4},
				append([]int{5}, long...), {5}, {1}} {
				for _, n := range []int{1, 3, 100} {
					left := 24 - len(prompt) + 1
					want := fakeGreedy(prompt, 64, min(n, left))
					finish := FinishLength
					if n > left {
						finish = FinishContext
					}
					got, text, last, err := collect(s.GenerateTokens(ctx, prompt, Options{MaxTokens: n}))
					if !slices.Equal(got, want) || text != "" || last.Finish != finish || err != nil {
						t.Fatalf("prompt %d, %d tokens: got %d, %q, %q, %v, want %d, %q", prompt, n, got, text, last.Finish, err, want, finish)
					}
					if last.Stats.Prompt != len(prompt) || last.Stats.Generated != len(want) || last.Stats.Reused > len(prompt) {
						t.Errorf("prompt %d, %d tokens: %+v", prompt, n, last.Stats)
					}
				}
			}
		})
	}
}

// TestReuse checks how much of a prompt is computed again.
func TestReuse(t *testing.T) {
	for _, c := range []struct {
		name   string
		prompt []int
		reused int
	}{
		{"dynamic", []int{1, 2, 3, 4, 5, 6}, 4},
		{"dynamic", []int{1, 2, 3, 4}, 4},
		{"dynamic", []int{1, 2, 3}, 2}, // the logits of the last token are needed
		{"dynamic", []int{1, 2, 9, 4}, 2},
		{"dynamic", []int{9}, 0},
		{"dynamic, all logits", []int{1, 2, 3}, 3}, // they are known
		{"counted", []int{1, 2, 3, 4, 5, 6}, 4},
		{"counted", []int{1, 2, 3}, 0},
		{"no cache, all logits", []int{1, 2, 3, 4, 5}, 0},
		{"no cache, all logits", []int{1, 2, 3}, 3},
	} {
		f := conventionOf(c.name)
		s := sessionOf(t, f.load(t, nil))
		for _, prompt := range [][]int{{1, 2, 3, 4}, c.prompt} {
			got, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, Options{MaxTokens: 1}))
			if !slices.Equal(got, fakeGreedy(prompt, 64, 1)) || err != nil {
				t.Errorf("%s, prompt %d: got %d, %v", c.name, prompt, got, err)
			}
			if reused := last.Stats.Reused; len(prompt) != 4 && reused != c.reused {
				t.Errorf("%s, prompt %d: %d tokens reused, want %d", c.name, c.prompt, reused, c.reused)
			}
		}
	}
}

// TestExact drives a program that takes texts of one length only.
func TestExact(t *testing.T) {
	for _, length := range []int{4, 6, 24} {
		testExact(t, map[string]any{"get_max_seq_len": length})
	}
	testExact(t, nil)
}

func testExact(t *testing.T, meta map[string]any) {
	f := fakeDefault()
	f.cache, f.positions, f.dynamic, f.width, f.meta = "", 0, false, 6, meta
	s := sessionOf(t, f.load(t, nil))
	prompt := []int{1, 2, 3, 4, 5, 6}
	got, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, Options{}))
	if !slices.Equal(got, fakeGreedy(prompt, 64, 1)) || last.Finish != FinishContext || err != nil {
		t.Errorf("got %d, %q, %v", got, last.Finish, err)
	}
	_, _, _, err = collect(s.GenerateTokens(context.Background(), prompt[:5], Options{}))
	if e, ok := errors.AsType[*PromptError](err); !ok || *e != (PromptError{Tokens: 5, Context: 6, Exact: true}) {
		t.Errorf("five tokens: %v", err)
	}
}
