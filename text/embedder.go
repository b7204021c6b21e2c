package text

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// EmbedderInfo describes an embedder.
type EmbedderInfo struct {
	Context    int  // maximum number of tokens of a text, control tokens included
	Exact      bool // a text has this number of tokens
	Vocabulary int  // tokens are below it
	Dimensions int  // of a vector
	Pooling    Pooling
	Normalize  bool
	Rows       int // texts that are computed in a call
}

// Embedder computes vectors of texts, with a program that encodes tokens, such as BERT. It is immutable and safe for concurrent
// use, and refers to its program, which must stay open.
type Embedder struct {
	tok           tokenizer.Tokenizer // nil for none
	call          *encoder
	pool          *etrun.Pool
	info          EmbedderInfo
	prompt        string
	before, after []int // control tokens around a text
	pad           int
	warnings      []string
}

// LoadEmbedder returns the embedder of a program whose method takes tokens, and an attention mask and token types if it has more
// inputs, and returns a vector of each token or of each text. If the tokenizer is nil, it takes only tokens. LoadEmbedder loads the
// method and calls it. Errors are *ConventionError, *VocabularyError, *OptionError and those of etrun.
func LoadEmbedder(ctx context.Context, prog *etrun.Program, tok tokenizer.Tokenizer, o EmbedOptions) (*Embedder, error) {
	call, err := encoderOf(prog, cmp.Or(o.Method, "forward"))
	if err != nil {
		return nil, err
	}
	e := &Embedder{tok: tok, call: call, prompt: o.Prompt}
	if err := e.setOptions(&o); err != nil {
		return nil, err
	}
	if e.pool, err = prog.NewPool(call.method, max(o.Instances, 1), etrun.WithQueue(math.MaxInt32)); err != nil {
		return nil, err
	}
	if err := e.pool.Do(ctx, func(m *etrun.Method) error { return e.setCall(ctx, m, &o) }); err != nil {
		_ = e.pool.Close() // frees memory only
		return nil, err
	}
	return e, nil
}

// setOptions checks the options, and finds the control tokens.
func (e *Embedder) setOptions(o *EmbedOptions) error {
	e.info.Pooling, e.info.Normalize = cmp.Or(o.Pooling, PoolNone), o.Normalize
	switch {
	case !slices.Contains([]Pooling{PoolMean, PoolCLS, PoolLast, PoolNone}, e.info.Pooling):
		return &OptionError{Option: "pooling", Got: o.Pooling, Want: "mean, cls, last or none"}
	case e.info.Pooling == PoolNone && e.call.perToken:
		return &OptionError{Option: "pooling", Got: e.info.Pooling, Want: "mean, cls or last: the program returns a vector of each token"}
	case o.Context < 0:
		return &OptionError{Option: "context", Got: o.Context, Want: "a positive number of tokens"}
	case e.info.Pooling != PoolNone && !e.call.perToken:
		e.warnings = append(e.warnings, fmt.Sprintf("pooling %s has no effect: the program returns one vector of each text", e.info.Pooling))
		e.info.Pooling = PoolNone
	}
	if e.tok == nil {
		return nil
	}
	if framed, ok := e.tok.(tokenizer.Framed); ok {
		e.before, e.after = framed.Frame()
	} else if bos := e.tok.BOS(); bos >= 0 {
		e.before = []int{bos}
	}
	for _, name := range []string{"[PAD]", "<pad>"} {
		if id, ok := e.tok.ID(name); ok {
			e.pad = id
		}
	}
	return nil
}

// setCall finds out how an instance is called.
func (e *Embedder) setCall(ctx context.Context, m *etrun.Method, o *EmbedOptions) error {
	c := e.call
	if len(m.StateTensors()) > 0 {
		return c.reject("state, as the caches of a program that generates text", "none")
	}
	if err := c.findRoles(m.Report().Plan.Method); err != nil {
		return err
	}
	if err := e.setVocabulary(); err != nil {
		return err
	}
	if o.Context > 0 {
		if c.width == maxMetadata {
			c.width = o.Context
		}
		if o.Context > c.width {
			e.warnings = append(e.warnings, fmt.Sprintf("a context of %d tokens, but the program has %d: that is the context", o.Context, c.width))
		}
	}
	text := slices.Concat(e.before, []int{e.anyToken()}, e.after)
	for len(text) < 2 {
		text = append(text, text[0])
	}
	if err := c.findSizes(ctx, m, text); err != nil {
		return err
	}
	e.info.Dimensions, e.info.Context, e.info.Rows = c.dims, c.width, 1
	if c.exactRows && (c.mask >= 0 || c.exactWidth) { // else texts of several lengths do not fit into one call
		e.info.Rows = c.rows
	}
	e.info.Exact = c.exactWidth && c.mask < 0
	switch {
	case c.width == maxMetadata:
		return &OptionError{Option: "context", Got: o.Context, Want: "a number of tokens, as the program has no bound"}
	case !e.info.Exact && o.Context > 0:
		e.info.Context = min(o.Context, c.width)
	}
	return nil
}

// anyToken returns a token for a test.
func (e *Embedder) anyToken() int {
	if len(e.before) > 0 {
		return e.before[0]
	}
	return 0
}

// setVocabulary compares the numbers of tokens.
func (e *Embedder) setVocabulary() error {
	n := e.call.vocabulary
	e.info.Vocabulary = cmp.Or(n, maxMetadata)
	if dims := e.call.dims; dims == n {
		return e.call.reject(fmt.Sprintf("output 0: %d numbers, which are logits of the program's %d tokens", dims, n), wantVector)
	}
	if e.tok == nil {
		return nil
	}
	size := e.tok.Size()
	if n > 0 && (size > n+n/64 || size < n-n/8) {
		return &VocabularyError{Program: n, Tokenizer: size}
	}
	e.info.Vocabulary = min(e.info.Vocabulary, size)
	return nil
}

// Info describes the embedder.
func (e *Embedder) Info() EmbedderInfo { return e.info }

// Tokenizer returns the embedder's tokenizer, nil if it has none.
func (e *Embedder) Tokenizer() tokenizer.Tokenizer { return e.tok }

// Warnings returns contradictions of the options and the program that do not prevent their use.
func (e *Embedder) Warnings() []string { return slices.Clone(e.warnings) }

// Close frees the instances. Calls in progress complete or fail with etrun.ErrClosed, as do later ones.
func (e *Embedder) Close() error { return e.pool.Close() }

// Encode returns the tokens of a text: those of the prompt and s, in which the names of control tokens are plain text, with the
// tokenizer's control tokens around them.
func (e *Embedder) Encode(s string) ([]int, error) {
	if e.tok == nil {
		return nil, errNoTokenizer()
	}
	ids, err := e.tok.Encode(e.prompt+s, false)
	return slices.Concat(e.before, ids, e.after), err
}

// EncodeUpTo is Encode for at most n tokens: it drops the last tokens of a longer text, and none of the control tokens around it.
func (e *Embedder) EncodeUpTo(s string, n int) ([]int, error) {
	if least := len(e.before) + len(e.after); n < max(least, 1) {
		return nil, &OptionError{Option: "tokens of a text", Got: n, Want: fmt.Sprintf("%d or more", max(least, 1))}
	}
	ids, err := e.Encode(s)
	if err != nil || len(ids) <= n {
		return ids, err
	}
	return append(ids[:n-len(e.after)], e.after...), nil
}

// Check checks the number of a text's tokens, and the tokens.
func (e *Embedder) Check(tokens []int) error {
	n := len(tokens)
	if n < 1 || n > e.info.Context || e.info.Exact && n != e.info.Context {
		return &PromptError{Tokens: n, Context: e.info.Context, Exact: e.info.Exact}
	}
	for i, id := range tokens {
		if id < 0 || id >= e.info.Vocabulary {
			return &TokenError{ID: id, Index: i, Vocabulary: e.info.Vocabulary}
		}
	}
	return nil
}

// Embed returns the vectors of texts, each of Dimensions numbers. Errors are *PromptError, *VectorError, *tokenizer.Error and
// those of etrun.
func (e *Embedder) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	tokens := make([][]int, len(texts))
	for i, s := range texts {
		var err error
		if tokens[i], err = e.Encode(s); err != nil {
			return nil, err
		}
	}
	vectors := make([][]float32, 0, len(texts))
	return vectors, e.EmbedTokens(ctx, tokens, func(v []float32) error {
		vectors = append(vectors, slices.Clone(v))
		return nil
	})
}

// EmbedTokens calls yield with the vector of each text, given as tokens, in their order. The vector is overwritten after yield
// returns. EmbedTokens ends with the first error of yield.
func (e *Embedder) EmbedTokens(ctx context.Context, texts [][]int, yield func(vector []float32) error) error {
	for _, t := range texts {
		if err := e.Check(t); err != nil {
			return err
		}
	}
	vector := make([]float32, e.call.dims)
	for part := range slices.Chunk(texts, e.info.Rows) {
		err := e.pool.Do(ctx, func(m *etrun.Method) error { return e.compute(ctx, m, part, vector, yield) })
		if err != nil {
			return err
		}
	}
	return nil
}

// leastWidth is the smallest number of tokens of a call, if it can be padded: exporters exclude 1.
const leastWidth = 2

// compute computes the vectors of texts in one call.
func (e *Embedder) compute(ctx context.Context, m *etrun.Method, texts [][]int, vector []float32, yield func([]float32) error) error {
	c := e.call
	b := &batch{rows: texts, pad: e.pad, width: c.width}
	if !c.exactWidth {
		b.width = len(slices.MaxFunc(texts, func(x, y []int) int { return len(x) - len(y) }))
		if c.mask >= 0 {
			b.width = max(b.width, min(leastWidth, c.width))
		}
	}
	if err := c.set(m, b); err != nil {
		return err
	}
	if err := m.Execute(ctx); err != nil {
		return err
	}
	rows := len(texts)
	if c.exactRows {
		rows = c.rows
	}
	out, err := c.output(m, rows, b.width)
	if err != nil {
		return err
	}
	all := floatsOf(out)
	for row, t := range texts {
		if err := e.finish(all, row, b.width, len(t), vector); err != nil {
			return err
		}
		if err := yield(vector); err != nil {
			return err
		}
	}
	return nil
}

// finish sets vector to that of a row with n tokens.
func (e *Embedder) finish(all func(i int) float32, row, width, n int, vector []float32) error {
	first, last := row, row // vectors of the output
	switch e.info.Pooling {
	case PoolMean:
		first, last = row*width, row*width+n-1
	case PoolCLS:
		first, last = row*width, row*width
	case PoolLast:
		first, last = row*width+n-1, row*width+n-1
	}
	for d := range vector {
		sum := 0.0
		for t := first; t <= last; t++ {
			sum += float64(all(t*len(vector) + d))
		}
		sum /= float64(last - first + 1)
		if math.IsNaN(sum) || math.Abs(sum) > math.MaxFloat32 {
			return &VectorError{Dimension: d, Value: sum}
		}
		vector[d] = float32(sum)
	}
	if e.info.Normalize {
		Normalize(vector)
	}
	return nil
}

// Normalize divides a vector by its Euclidean length, unless that is 0.
func Normalize(vector []float32) {
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	length := math.Sqrt(sum)
	for i, x := range vector {
		vector[i] = float32(float64(x) / length)
	}
}

// floatsOf returns the elements of a tensor of floats.
func floatsOf(t *tensor.Tensor) func(i int) float32 {
	switch t.DType {
	case tensor.Float16:
		data := tensor.Data[uint16](t)
		return func(i int) float32 { return tensor.HalfToFloat(data[i]) }
	case tensor.BFloat16:
		data := tensor.Data[uint16](t)
		return func(i int) float32 { return tensor.BFloatToFloat(data[i]) }
	}
	data := tensor.Data[float32](t)
	return func(i int) float32 { return data[i] }
}
