package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Cache is the kind of state in which a program stores the computed part of a text.
type Cache string

// Kinds of caches.
const (
	// CacheNone: each call computes the whole text again.
	CacheNone Cache = "none"
	// CachePositions: a key-value cache with a slot per position of the context. A session can go
	// back to any position.
	CachePositions Cache = "positions"
	// CacheRecurrent: state that depends on the order of the calls, such as the cache of a sliding
	// window. A session that goes back computes the text again from its beginning.
	CacheRecurrent Cache = "recurrent"
)

// convention describes how the method "forward" is called.
type convention struct {
	method  string
	rows    int // numbers of the row that each token is for the method; 0 if it takes tokens
	rowType tensor.DType
	rank    int // of the rows
	// Of the method that makes rows of tokens: the tokens of a call, at most or exactly.
	tokensMost  int
	tokensFixed bool
	cache       Cache
	tokens      tensor.DType // of the tokens: int64 or int32
	width       int          // maximum number of tokens per call
	fixed       bool         // each call takes width tokens
	position    tensor.DType // of the position; only if places is not 0
	positions   int          // elements of the position input: 0 for no such input, 1 for the first token's, else one per token
	all         bool         // logits of all tokens of a call, not only of the last
	logits      tensor.DType
	vocabulary  int // logits per token
}

// want describes what Load accepts.
const (
	wantTokens   = "int64 or int32 tokens of sizes [1, n] or [n]"
	wantPosition = "an int64 or int32 position of size [1], or one per token"
	wantLogits   = "float32, float16 or bfloat16 logits of sizes [1, vocabulary] or [1, tokens, vocabulary]"
)

// known describes other kinds of language models, for errors. The first ones are like those of prompts with parts.
var known = []struct {
	method, words string
	parts         bool
}{
	{"encode_audio_chunk", "the methods of Voxtral Realtime", true},
	{"downsample_factor", "the methods of Voxtral Realtime", true},
	{"semantic_head", "the methods of Voxtral TTS", true},
	{"speech_transform", "the methods of Gemma 4", true},
	{"has_ple", "the methods of Gemma 4", true},
	{"kv_forward", "the methods prefill_forward and kv_forward, with masks and caches as inputs", false},
	{"prefill_forward", "the methods prefill_forward and kv_forward, with masks and caches as inputs", false},
	{methodDecoder, "the method text_decoder without token_embedding", false},
	{methodRows, "the method token_embedding without text_decoder", false},
	{"encoder", "an encoder and a decoder", false},
}

// find returns the method that computes logits. Of programs whose prompts have other parts than text it is their decoder.
func find(p *etrun.Program, method string) (name string, parts bool, err error) {
	has := func(name string) bool { return slices.Contains(p.MethodNames(), name) }
	parts = has(methodRows) && has(methodDecoder) && (method == methodDecoder || method == defaultMethod && !has(method))
	if parts {
		method = methodDecoder
	}
	got := ""
	if !has(method) {
		got = "the methods " + strings.Join(p.MethodNames(), ", ")
	}
	for _, k := range known {
		if has(k.method) && (parts && k.parts || !has(method)) {
			got = k.words
			if k.parts {
				break
			}
		}
	}
	if got != "" {
		want := "the method " + method
		if parts {
			want = "a model of text and of pictures or sounds as optimum exports it"
		}
		return method, parts, &ConventionError{Method: method, Got: fmt.Sprintf("%.300s", got), Want: want}
	}
	return method, parts, nil
}

// signature derives the convention from the declaration of a method, except for the cache.
func signature(p *etrun.Program, method string) (*convention, error) {
	method, parts, err := find(p, method)
	if err != nil {
		return nil, err
	}
	c := &convention{method: method}
	meta, err := p.Meta(method)
	if err != nil {
		return nil, err
	}
	if n := len(meta.Inputs); n < 1 || n > 2 {
		return nil, c.reject(fmt.Sprintf("%d inputs", n), "tokens or their rows, and at most a position")
	}
	if parts {
		err = c.readRows(p, &meta.Inputs[0])
	} else {
		err = c.readTokens(&meta.Inputs[0])
	}
	if err != nil {
		return nil, err
	}
	if len(meta.Inputs) == 2 {
		if err := c.readPosition(&meta.Inputs[1]); err != nil {
			return nil, err
		}
	}
	if len(meta.Outputs) < 1 {
		return nil, c.reject("no outputs", wantLogits)
	}
	return c, c.readLogits(&meta.Outputs[0])
}

// readRows reads the declaration of the rows that the method takes, and of the method that makes them of tokens.
func (c *convention) readRows(p *etrun.Program, v *etrun.ValueMeta) error {
	meta, err := p.Meta(methodRows)
	if err != nil {
		return err
	}
	of := convention{method: methodRows}
	if len(meta.Inputs) != 1 || len(meta.Outputs) != 1 {
		return of.reject(fmt.Sprintf("%d inputs and %d outputs", len(meta.Inputs), len(meta.Outputs)), "tokens, and the rows that it makes of them")
	}
	if err := of.readTokens(&meta.Inputs[0]); err != nil {
		return err
	}
	n := len(v.Sizes)
	if v.Kind != tensor.KindTensor || n < 2 || n > 3 || n == 3 && v.Sizes[0] != 1 || v.Sizes[n-1] < 1 || v.Sizes[n-1] > maxRow || !isLogits(v.DType) {
		return c.reject("input 0: "+describe(v), "float32, float16 or bfloat16 rows of sizes [1, tokens, numbers]")
	}
	c.tokens, c.tokensMost, c.tokensFixed = of.tokens, of.width, of.fixed
	c.rows, c.rowType, c.rank = v.Sizes[n-1], v.DType, n
	c.width, c.fixed = v.Sizes[n-2], v.Dynamism == tensor.Static
	if v.Dynamism == tensor.DynamicUnbound {
		c.width = maxMetadata
	}
	if c.width < 1 {
		return c.reject("input 0: "+describe(v), "rows of one token or more")
	}
	return nil
}

// maxRow bounds the numbers of a row.
const maxRow = 1 << 20

// isLogits reports whether a type is one of logits and rows.
func isLogits(d tensor.DType) bool {
	return d == tensor.Float32 || d == tensor.Float16 || d == tensor.BFloat16
}

// MediaOf returns the media of a program whose prompts have other parts than text, by its methods. For other programs parts is false; for one
// that has such methods, but that [Load] does not accept, there is an error.
func MediaOf(p *etrun.Program) (list []Medium, parts bool, err error) {
	if _, parts, err = find(p, defaultMethod); !parts {
		return nil, false, nil
	}
	if err == nil {
		_, err = signature(p, methodDecoder)
	}
	for _, e := range encoders {
		if slices.Contains(p.MethodNames(), e.method) {
			list = append(list, e.medium)
		}
	}
	return list, true, err
}

// Generates reports whether a method of a program is declared as one that [Load] accepts.
func Generates(p *etrun.Program, method string) bool {
	_, err := signature(p, method)
	return err == nil
}

func (c *convention) reject(got, want string) error {
	return &ConventionError{Method: c.method, Got: got, Want: want}
}

func describe(v *etrun.ValueMeta) string {
	if v.Kind != tensor.KindTensor {
		return "a " + v.Kind.String()
	}
	return fmt.Sprintf("%v %s", v.DType, tensor.FormatSizes(v.Sizes))
}

// isInteger reports whether v is a tensor of int64 or int32.
func isInteger(v *etrun.ValueMeta) bool {
	return v.Kind == tensor.KindTensor && (v.DType == tensor.Int64 || v.DType == tensor.Int32)
}

// row returns the number of elements of a tensor of sizes [n], [1, n] and so on.
func row(sizes []int, rank int) (n int, ok bool) {
	if len(sizes) == 0 || len(sizes) > rank {
		return 0, false
	}
	for _, s := range sizes[:len(sizes)-1] {
		if s != 1 {
			return 0, false
		}
	}
	return sizes[len(sizes)-1], true
}

func (c *convention) readTokens(v *etrun.ValueMeta) error {
	n, ok := row(v.Sizes, 2)
	if !isInteger(v) || !ok || n < 1 {
		return c.reject("input 0: "+describe(v), wantTokens)
	}
	c.tokens, c.width, c.fixed = v.DType, n, v.Dynamism == tensor.Static
	if v.Dynamism == tensor.DynamicUnbound {
		c.width = maxMetadata
	}
	return nil
}

func (c *convention) readPosition(v *etrun.ValueMeta) error {
	n, ok := row(v.Sizes, 1)
	if len(v.Sizes) == 0 {
		n, ok = 1, true
	}
	dynamic := v.Dynamism != tensor.Static
	if !isInteger(v) || !ok || n < 1 || (n > 1 || dynamic) && dynamic == c.fixed || n > 1 && n < c.width && c.width != maxMetadata {
		return c.reject("input 1: "+describe(v), wantPosition)
	}
	c.position, c.positions = v.DType, 1
	if n > 1 || dynamic {
		c.positions = c.width
	}
	return nil
}

func (c *convention) readLogits(v *etrun.ValueMeta) error {
	bad := c.reject("output 0: "+describe(v), wantLogits)
	if v.Kind != tensor.KindTensor || len(v.Sizes) == 0 || len(v.Sizes) > 3 || len(v.Sizes) == 3 && v.Sizes[0] != 1 {
		return bad
	}
	if !isLogits(v.DType) {
		return bad
	}
	rows := 1
	for _, n := range v.Sizes[:len(v.Sizes)-1] {
		rows *= n
	}
	c.logits, c.vocabulary, c.all = v.DType, v.Sizes[len(v.Sizes)-1], rows > 1
	if rows != 1 && rows < c.width && c.width != maxMetadata || c.vocabulary < 1 || c.vocabulary > maxMetadata {
		return bad
	}
	return nil
}

// findCache derives the kind of cache from the instance's state.
func (c *convention) findCache(state []*tensor.Tensor, claimed *bool, context int) error {
	switch {
	case len(state) == 0 || c.positions == 0 && claimed != nil && !*claimed:
		c.cache = CacheNone
	case claimed != nil && !*claimed:
		return &MetadataError{Name: "use_kv_cache", Got: "false", Want: "true for a method with a position and state"}
	case c.positions > 0 && !slices.ContainsFunc(state, func(t *tensor.Tensor) bool { return !slices.Contains(t.Sizes, context) }):
		c.cache = CachePositions
	default:
		c.cache = CacheRecurrent
	}
	return c.checkWidth(context)
}

// checkWidth rejects fixed widths with which the logits of some tokens cannot be computed.
func (c *convention) checkWidth(context int) error {
	switch {
	case !c.fixed || c.width == 1 || c.cache == CacheNone:
		return nil
	case !c.all || c.cache == CacheRecurrent:
		return c.reject(fmt.Sprintf("exactly %d tokens a call, and a cache", c.width), "one token a call, or a dynamic number of them")
	case c.width > context:
		return c.reject(fmt.Sprintf("exactly %d tokens a call", c.width), fmt.Sprintf("at most the context of %d tokens", context))
	}
	return nil
}

// contextOf returns the number of positions: the one in the metadata or, without it, the size of the
// caches, which are [batch, heads, positions, head size] or [batch, positions, heads, head size].
func (c *convention) contextOf(d *metadata, state []*tensor.Tensor) (int, error) {
	n := int64(0)
	switch {
	case d.maxContext > 0:
		n = d.maxContext
	case d.maxSeq > 0:
		n = d.maxSeq
	default:
		for _, t := range state {
			if len(t.Sizes) == 4 {
				n = max(n, int64(t.Sizes[1]), int64(t.Sizes[2]))
			}
		}
	}
	if len(state) == 0 && n == 0 {
		n = int64(c.width) // every call computes the whole text
	}
	if n == 0 {
		return 0, &MetadataError{Name: "get_max_context_len", Got: "no such method", Want: "the number of positions of the context"}
	}
	return int(n), nil
}
