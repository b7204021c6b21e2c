package text

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// encoder describes how a method that computes vectors of texts is called.
type encoder struct {
	method      string
	kinds       []tensor.DType // of the inputs
	mask, types int            // inputs, -1 for none
	flat        bool           // the inputs are [tokens], not [texts, tokens]
	rows, width int            // texts and tokens of a call, at most
	dynamic     bool
	exactRows   bool // a call has all rows
	exactWidth  bool // and all tokens
	vector      tensor.DType
	dims        int
	perToken    bool // the output has a vector of each token
	vocabulary  int  // 0 if unknown
}

const (
	wantEncoder = "int64 or int32 tokens of sizes [texts, tokens] or [tokens], and at most an attention mask and token types of the same sizes"
	wantVector  = "float32, float16 or bfloat16 vectors of sizes [texts, tokens, dimensions] or [texts, dimensions]"
	maxTypes    = 16 // token types of a model; other numbers that index a table are positions
)

func (c *encoder) reject(got, want string) error {
	return &ConventionError{Kind: "an encoder of texts", Method: c.method, Got: got, Want: want}
}

// encoderOf derives the convention from the declaration of a method.
func encoderOf(p *etrun.Program, method string) (*encoder, error) {
	c := &encoder{method: method, mask: -1, types: -1}
	if !slices.Contains(p.MethodNames(), method) {
		return nil, c.reject(fmt.Sprintf("the methods %.300q", p.MethodNames()), "the method "+method)
	}
	meta, err := p.Meta(method)
	if err != nil {
		return nil, err
	}
	if n := len(meta.Inputs); n < 1 || n > 3 {
		return nil, c.reject(fmt.Sprintf("%d inputs", n), wantEncoder)
	}
	first := &meta.Inputs[0]
	for i := range meta.Inputs {
		v := &meta.Inputs[i]
		fits := isInteger(v) || i > 0 && v.Kind == tensor.KindTensor && v.DType == tensor.Bool
		if !fits || !slices.Equal(v.Sizes, first.Sizes) || (v.Dynamism == tensor.Static) != (first.Dynamism == tensor.Static) {
			return nil, c.reject(fmt.Sprintf("input %d: %s", i, describe(v)), wantEncoder)
		}
		c.kinds = append(c.kinds, v.DType)
	}
	if err := c.readSizes(first); err != nil {
		return nil, err
	}
	if len(meta.Outputs) < 1 {
		return nil, c.reject("no outputs", wantVector)
	}
	return c, c.readVector(&meta.Outputs[0])
}

// Encodes reports whether a method of a program is declared as one that [LoadEmbedder] accepts.
func Encodes(p *etrun.Program, method string) bool {
	_, err := encoderOf(p, method)
	return err == nil
}

// readSizes reads how many texts and tokens a call has.
func (c *encoder) readSizes(v *etrun.ValueMeta) error {
	sizes := v.Sizes
	if n := len(sizes); n < 1 || n > 2 || slices.Min(sizes) < 1 {
		return c.reject("input 0: "+describe(v), wantEncoder)
	}
	c.flat, c.rows, c.width = len(sizes) == 1, 1, sizes[len(sizes)-1]
	if !c.flat {
		c.rows = sizes[0]
	}
	c.dynamic = v.Dynamism != tensor.Static
	if v.Dynamism == tensor.DynamicUnbound {
		c.rows, c.width = 1, maxMetadata
	}
	return nil
}

// readVector reads the output.
func (c *encoder) readVector(v *etrun.ValueMeta) error {
	bad := c.reject("output 0: "+describe(v), wantVector)
	if v.Kind != tensor.KindTensor || v.DType != tensor.Float32 && v.DType != tensor.Float16 && v.DType != tensor.BFloat16 {
		return bad
	}
	leading := 1 // dimensions before the vector of a text
	if c.flat && len(v.Sizes) == 1 {
		leading = 0
	}
	c.perToken = len(v.Sizes) == 3 || c.flat && len(v.Sizes) == 2 && v.Sizes[0] == c.width && c.width > 1
	if n := len(v.Sizes); n != leading+1 && !c.perToken || n == 0 {
		return bad
	}
	c.vector, c.dims = v.DType, v.Sizes[len(v.Sizes)-1]
	if c.dims < 1 || c.dims > maxMetadata {
		return bad
	}
	return nil
}

// findRoles finds out which inputs are the mask and the token types: only these index a table of embeddings. Exporters write
// them in either order.
func (c *encoder) findRoles(m *ir.Method) error {
	c.vocabulary = m.Bound(m.Inputs[0]).Most
	var unclear []int
	for i := 1; i < len(m.Inputs); i++ {
		switch b := m.Bound(m.Inputs[i]).Most; {
		case b > maxTypes:
			return c.reject(fmt.Sprintf("input %d: numbers that index a table of %d rows, as positions do", i, b), wantEncoder)
		case b > 0 && c.types >= 0:
			return c.reject("two inputs that index tables, as token types do", wantEncoder)
		case b > 0:
			c.types = i
		default:
			unclear = append(unclear, i)
		}
	}
	if len(unclear) > 0 {
		c.mask = unclear[0]
	}
	if len(unclear) > 1 { // both are computed within a delegate: the order of the model's arguments
		c.types = unclear[1]
	}
	if c.types >= 0 && c.kinds[c.types] == tensor.Bool {
		return c.reject(fmt.Sprintf("input %d: bool token types", c.types), wantEncoder)
	}
	return nil
}

// batch is the texts of a call as rows of the inputs.
type batch struct {
	rows  [][]int
	width int
	pad   int
}

// set sets the inputs of a call. Rows beyond the texts repeat the first one.
func (c *encoder) set(m *etrun.Method, b *batch) error {
	rows := len(b.rows)
	if c.exactRows {
		rows = c.rows
	}
	for i := range c.kinds {
		number := func(row, at int) int {
			if row >= len(b.rows) {
				row = 0
			}
			inside := at < len(b.rows[row])
			switch {
			case i == c.types, i == c.mask && !inside:
				return 0
			case i == c.mask:
				return 1
			case inside:
				return b.rows[row][at]
			}
			return b.pad
		}
		sizes := []int{rows, b.width}
		if c.flat {
			sizes = sizes[1:]
		}
		if err := setNumbers(m, i, c.kinds[i], rows, b.width, number, sizes); err != nil {
			return err
		}
	}
	return nil
}

// setNumbers sets an input of rows of numbers.
func setNumbers(m *etrun.Method, i int, kind tensor.DType, rows, width int, number func(row, at int) int, sizes []int) error {
	switch kind {
	case tensor.Int32:
		return etrun.Set(m, i, numbersOf(rows, width, func(row, at int) int32 { return int32(number(row, at)) }), sizes...)
	case tensor.Bool:
		return etrun.Set(m, i, numbersOf(rows, width, func(row, at int) bool { return number(row, at) != 0 }), sizes...)
	}
	return etrun.Set(m, i, numbersOf(rows, width, func(row, at int) int64 { return int64(number(row, at)) }), sizes...)
}

func numbersOf[T any](rows, width int, number func(row, at int) T) []T {
	list := make([]T, rows*width)
	for k := range list {
		list[k] = number(k/width, k%width)
	}
	return list
}

// output returns the output after a call, checked against the inputs.
func (c *encoder) output(m *etrun.Method, rows, width int) (*tensor.Tensor, error) {
	v, err := m.Output(0)
	if err != nil {
		return nil, err
	}
	want := rows * c.dims
	if c.perToken {
		want *= width
	}
	if t := v.Tensor; t.Numel() != want || !t.IsContiguous() {
		return nil, c.reject(fmt.Sprintf("%v %s for %d texts of %d tokens", t.DType, tensor.FormatSizes(t.Sizes), rows, width), wantVector)
	}
	return v.Tensor, nil
}

// findSizes finds out which sizes of a dynamic method vary, by calls: the file does not say. text is any one.
func (c *encoder) findSizes(ctx context.Context, m *etrun.Method, text []int) error {
	rows, widths := []int{c.rows}, []int{c.width}
	if c.dynamic {
		rows, widths = slices.Compact([]int{1, c.rows}), slices.Compact([]int{min(len(text), c.width), c.width})
	}
	var first error
	for _, width := range widths {
		for _, n := range rows {
			if width == maxMetadata { // no bound
				return first
			}
			c.exactRows, c.exactWidth = n > 1, width == c.width
			err := c.try(ctx, m, text, width)
			if err == nil || ctx.Err() != nil {
				return err
			}
			first = cmp.Or(first, err)
		}
	}
	return first
}

// try makes a call.
func (c *encoder) try(ctx context.Context, m *etrun.Method, text []int, width int) error {
	rows := 1
	if c.exactRows {
		rows = c.rows
	}
	if err := c.set(m, &batch{rows: [][]int{text[:min(len(text), width)]}, width: width}); err != nil {
		return err
	}
	if err := m.Execute(ctx); err != nil {
		return err
	}
	_, err := c.output(m, rows, width)
	return err
}
