package npy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// header is the dictionary at the start of a .npy file, a Python literal such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
type header struct {
	descr   string
	fortran bool
	shape   []int
}

// letters maps the array protocol's kind letter and width to element types.
var letters = map[string]tensor.DType{
	"b1": tensor.Bool,
	"u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64,
	"i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64,
	"c8": tensor.Complex64, "c16": tensor.Complex128,
}

// raw maps raw elements to types of the same width.
var raw = map[string]tensor.DType{"V1": tensor.Uint8, "V2": tensor.Bits16, "V4": tensor.Uint32, "V8": tensor.Uint64}

// array returns the empty array described by h, and the width of units to byte-swap, 0 for
// none.
func (h header) array() (a *Array, swap int, err error) {
	if len(h.descr) < 2 {
		return nil, 0, fmt.Errorf("%w: descr %q", ErrFormat, h.descr)
	}
	a = &Array{Sizes: h.shape}
	order, name := h.descr[0], h.descr[1:]
	if !strings.ContainsRune("<>|=", rune(order)) {
		order, name = '=', h.descr
	}
	var known bool
	if a.DType, known = letters[name]; !known {
		if a.DType, a.Void = raw[name]; !a.Void {
			return nil, 0, fmt.Errorf("%w: descr %q is not a numeric type", ErrUnsupported, h.descr)
		}
		return a, 0, nil
	}
	if order == '>' {
		swap = a.DType.Size()
		if a.DType.IsComplex() {
			swap /= 2
		}
	}
	return a, swap, nil
}

// parseHeader parses the dictionary: the three keys, each once, in any order.
func parseHeader(text string) (h header, err error) {
	p := literal{rest: text}
	p.want('{')
	seen := map[string]bool{}
	for p.err == nil && !p.accept('}') {
		key := p.str()
		p.want(':')
		if seen[key] {
			p.fail("duplicate key %q", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr = p.str()
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("unknown key %q", key)
		}
		if !p.accept(',') && p.peek() != '}' {
			p.fail("%q, want a comma or the end", p.peek())
		}
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("%d keys, want descr, fortran_order and shape", len(seen))
	}
	if p.err == nil && strings.TrimSpace(p.rest) != "" {
		p.fail("%q after the dictionary", p.rest)
	}
	if p.err == nil {
		if err := tensor.CheckShape(h.shape, nil); err != nil {
			return h, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	return h, p.err
}

// literal scans a Python literal; after the first error everything returns zero.
type literal struct {
	rest string
	err  error
}

func (p *literal) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: header: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
	p.rest = ""
}

// peek returns the next byte after white space, 0 at the end.
func (p *literal) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *literal) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *literal) want(c byte) {
	if !p.accept(c) {
		p.fail("%q, want %q", p.peek(), c)
	}
}

// str reads a quoted string without escapes. A list here is a structured type.
func (p *literal) str() string {
	quote := p.peek()
	if quote == '[' {
		p.err = fmt.Errorf("%w: structured elements", ErrUnsupported)
		return ""
	}
	if quote != '\'' && quote != '"' {
		p.fail("%q, want a string", quote)
		return ""
	}
	text, rest, found := strings.Cut(p.rest[1:], string(quote))
	if !found || strings.ContainsRune(text, '\\') {
		p.fail("unterminated string, or an escape")
		return ""
	}
	p.rest = rest
	return text
}

func (p *literal) boolean() bool {
	p.peek()
	for word, value := range map[string]bool{"True": true, "False": false} {
		if rest, ok := strings.CutPrefix(p.rest, word); ok {
			p.rest = rest
			return value
		}
	}
	p.fail("fortran_order is neither True nor False")
	return false
}

// tuple reads (), (3,) or (3, 4).
func (p *literal) tuple() []int {
	p.want('(')
	sizes := []int{}
	for p.err == nil && !p.accept(')') {
		sizes = append(sizes, p.integer())
		if !p.accept(',') && p.peek() != ')' {
			p.fail("%q in a tuple", p.peek())
		}
		if len(sizes) > tensor.MaxRank {
			p.fail("rank above %d", tensor.MaxRank)
		}
	}
	return sizes
}

func (p *literal) integer() int {
	p.peek()
	digits := 0
	for digits < len(p.rest) && p.rest[digits] >= '0' && p.rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(p.rest[:digits])
	if err != nil {
		p.fail("size %q: none, or too large", p.rest[:digits])
		return 0
	}
	p.rest = strings.TrimPrefix(p.rest[digits:], "L") // Python 2 writes 3L
	return n
}
