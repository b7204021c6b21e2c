package kerneltest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// ParseCall parses a call in the format of failure messages and testdata/calls.txt:
//
//	aten::cat.out(tensors=[float32[2 3] float32[1 3]], dim=0, out=float32[3 3]max9)
//
// A tensor is its type and sizes, then order[…] for a dim order, max n for a bounded tensor of n
// elements, and {…} for elements in memory order, all without spaces in between. Items of lists are
// separated by spaces. Floats have a point or an exponent, or are NaN or ±Inf; complex elements are like 1.5-2i. Names of arguments
// are optional.
func ParseCall(line string) (op string, args []any, err error) {
	op, rest, ok := strings.Cut(line, "(")
	if !ok || !strings.HasSuffix(rest, ")") {
		return "", nil, fmt.Errorf("call %q: no argument list", line)
	}
	p := &parser{rest: rest[:len(rest)-1]}
	for p.rest != "" {
		p.name()
		a, err := p.value()
		if err != nil {
			return "", nil, fmt.Errorf("call %q: before %q: %w", line, p.rest, err)
		}
		args = append(args, a)
		if p.rest != "" && !p.skip(", ") {
			return "", nil, fmt.Errorf("call %q: %q: want a comma", line, p.rest)
		}
	}
	return op, args, nil
}

type parser struct{ rest string }

func (p *parser) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// until consumes the text before the first of the stop characters.
func (p *parser) until(stop string) string {
	i := strings.IndexAny(p.rest, stop)
	if i < 0 {
		i = len(p.rest)
	}
	s := p.rest[:i]
	p.rest = p.rest[i:]
	return s
}

// name skips "self=".
func (p *parser) name() {
	if i := strings.IndexAny(p.rest, "=,[\" "); i > 0 && p.rest[i] == '=' {
		p.rest = p.rest[i+1:]
	}
}

func (p *parser) value() (any, error) {
	switch {
	case strings.HasPrefix(p.rest, `"`):
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return nil, err
		}
		p.rest = p.rest[len(quoted):]
		return strconv.Unquote(quoted)
	case p.skip("["):
		return p.list()
	}
	word := p.until(",[] ")
	if strings.HasPrefix(p.rest, "[") {
		return p.tensor(word)
	}
	return scalar(word)
}

// scalar parses None, a bool, an int or a float.
func scalar(word string) (any, error) {
	switch word {
	case "None":
		return nil, nil
	case "true", "false":
		return word == "true", nil
	}
	if i, err := strconv.ParseInt(word, 10, 64); err == nil {
		return i, nil
	}
	return strconv.ParseFloat(word, 64)
}

// list parses the items after "[". An empty list is an int list.
func (p *parser) list() (any, error) {
	var items []any
	for !p.skip("]") {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		if !p.skip(" ") && !strings.HasPrefix(p.rest, "]") {
			return nil, fmt.Errorf("missing ]")
		}
	}
	for _, v := range items {
		switch v.(type) {
		case *tensor.Tensor:
			return typed[*tensor.Tensor](items), nil
		case float64:
			return typed[float64](items), nil
		case bool:
			return typed[bool](items), nil
		}
	}
	if len(items) > 0 && items[0] == nil {
		return typed[*tensor.Tensor](items), nil
	}
	return typed[int64](items), nil
}

// typed converts a list to []T; None becomes T's zero.
func typed[T any](items []any) []T {
	list := make([]T, len(items))
	for i, v := range items {
		list[i], _ = v.(T)
	}
	return list
}

// tensor parses the part after a type's name.
func (p *parser) tensor(dtype string) (*tensor.Tensor, error) {
	d, err := tensor.ParseDType(dtype)
	if err != nil {
		return nil, err
	}
	sizes, err := numbers[int](p, "[", "]")
	if err != nil {
		return nil, err
	}
	order, dyn, limit := []uint8(nil), tensor.Static, 0
	if p.skip("order") {
		if order, err = numbers[uint8](p, "[", "]"); err != nil {
			return nil, err
		}
	}
	if p.skip("max") {
		dyn = tensor.DynamicBound
		if limit, err = strconv.Atoi(p.until(" ,]{")); err != nil {
			return nil, err
		}
	}
	if err := tensor.CheckShape(sizes, order); err != nil {
		return nil, err
	}
	t := tensor.Make(d, sizes, order, dyn)
	if dyn == tensor.DynamicBound {
		t.Limit(limit)
	}
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	return t, p.elements(t)
}

// elements parses "{1 2 3}", if present, as the elements of t.
func (p *parser) elements(t *tensor.Tensor) error {
	if !strings.HasPrefix(p.rest, "{") {
		return nil
	}
	p.rest = p.rest[1:]
	text := p.until("}")
	if !p.skip("}") {
		return fmt.Errorf("missing }")
	}
	words := strings.Fields(text)
	size := t.DType.Size()
	if len(words)*size != len(t.Data) {
		return fmt.Errorf("%d elements for %v", len(words), t)
	}
	for i, w := range words {
		if t.DType.IsComplex() {
			if err := putComplex(t, i, w); err != nil {
				return err
			}
			continue
		}
		v, err := scalar(w)
		if err != nil {
			return err
		}
		b := t.Data[i*size : (i+1)*size]
		switch v := v.(type) {
		case int64:
			tensor.Put(b, t.DType, v)
		case float64:
			tensor.Put(b, t.DType, v)
		}
	}
	return nil
}

// putComplex parses an element such as 1.5-2i.
func putComplex(t *tensor.Tensor, i int, word string) error {
	v, err := strconv.ParseComplex(word, 128)
	if err != nil {
		return err
	}
	if t.DType == tensor.Complex64 {
		tensor.Data[complex64](t)[i] = complex64(v)
	} else {
		tensor.Data[complex128](t)[i] = v
	}
	return nil
}

func numbers[T int | uint8](p *parser, left, right string) ([]T, error) {
	if !p.skip(left) {
		return nil, fmt.Errorf("want %q", left)
	}
	text := p.until(right)
	if !p.skip(right) {
		return nil, fmt.Errorf("want %q", right)
	}
	list := []T{}
	for _, w := range strings.Fields(text) {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		list = append(list, T(n))
	}
	return list, nil
}
