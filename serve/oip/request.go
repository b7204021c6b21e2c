package oip

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Fixed limits of a request.
const (
	maxParameters = 64
	maxText       = 4096 // bytes of a name, id or parameter
)

// Limits bounds one request. All numbers must be set.
type Limits struct {
	Header  int64 // bytes of the JSON part if binary tensors follow
	Body    int64 // bytes of the whole body: the number that it says to have, if it does
	Tensors int64 // bytes of all decoded tensors
	Inputs  int   // number of tensors, and of requested outputs
	// Alloc allocates the bytes of a tensor, which need not be zero; the default is
	// tensor.AlignedBytes.
	Alloc func(n int) []byte
	// Cache may be nil. It must be used with the same limits only, but for Body.
	Cache *Cache
}

// Read reads a request. headerLength is the value of the header HeaderLength: the size of the JSON
// part, which binary tensors follow; empty if the body is all JSON. Errors are *Error. The result
// does not refer to the body.
func Read(body io.Reader, headerLength string, limits Limits) (*Request, error) {
	p, err := newParser(body, headerLength, limits, "inputs")
	if err != nil {
		return nil, err
	}
	if r := limits.Cache.find(p); r != nil {
		return r, p.readBinary(r.Inputs)
	}
	r := &Request{}
	err = p.readObject(field{
		"id":         func(place string) (err error) { r.ID, err = p.text(place); return err },
		"parameters": func(place string) (err error) { r.Parameters, err = p.parameters(place); return err },
		"inputs":     func(place string) error { return p.list(place, &r.Inputs) },
		"outputs":    func(place string) error { return p.outputs(place, r) },
	})
	if err != nil {
		return nil, err
	}
	limits.Cache.keep(p, r)
	return r, p.readBinary(r.Inputs)
}

// ReadResponse reads an answer; see Read. It does not use limits.Cache.
func ReadResponse(body io.Reader, headerLength string, limits Limits) (*Response, error) {
	p, err := newParser(body, headerLength, limits, "outputs")
	if err != nil {
		return nil, err
	}
	r := &Response{}
	err = p.readObject(field{
		"id":            func(place string) (err error) { r.ID, err = p.text(place); return err },
		"model_name":    func(place string) (err error) { r.Model, err = p.text(place); return err },
		"model_version": func(place string) (err error) { r.Version, err = p.text(place); return err },
		"outputs":       func(place string) error { return p.list(place, &r.Outputs) },
	})
	if err != nil {
		return nil, err
	}
	return r, p.readBinary(r.Outputs)
}

// ReadRaw reads a request whose body is the binary data of one input, size bytes, and nothing else: those of BYTES are one string.
// Errors are *Error.
func ReadRaw(body io.Reader, t Tensor, size int64, limits Limits) (*Request, error) {
	p := inputParser(body, limits, "inputs")
	t.Binary = true
	var err error
	if t.Datatype == Bytes {
		err = p.binaryText("inputs[0]", &t, size)
	} else {
		err = p.binaryTensor("inputs[0]", &t, size, p.body)
	}
	if err == nil {
		err = p.atEnd()
	}
	if err != nil {
		return nil, p.body.explain(err)
	}
	return &Request{Inputs: []Tensor{t}}, nil
}

// inputParser returns a parser of a body without a JSON part.
func inputParser(body io.Reader, limits Limits, tensors string) *parser {
	if limits.Alloc == nil {
		limits.Alloc = tensor.AlignedBytes
	}
	return &parser{body: &bounded{r: body, most: limits.Body, left: limits.Body}, limits: limits, left: limits.Tensors, tensors: tensors}
}

// newParser returns a parser of the JSON part. If binary data follow, it has read that part.
// tensors is the name of the list of tensors.
func newParser(body io.Reader, headerLength string, limits Limits, tensors string) (*parser, error) {
	p := inputParser(body, limits, tensors)
	if headerLength == "" {
		return p.decode(newSource(p.body)), nil
	}
	n, err := strconv.ParseUint(headerLength, 10, 63)
	if err != nil || n == 0 {
		return nil, invalid(HeaderLength, "%.40q, want the number of bytes of the JSON part", headerLength)
	}
	if int64(n) > limits.Header {
		return nil, &Error{ErrTooLarge, HeaderLength, fmt.Errorf("%d, want at most %d", n, limits.Header)}
	}
	buf := make([]byte, n+padding)
	got, _ := io.ReadFull(p.body, buf[:n]) // JSON that is cut off has its own error
	clear(buf[got:])
	p.binary, p.header = true, buf[:got]
	return p.decode(sourceOf(buf, got)), nil
}

// decode sets the source of the JSON part.
func (p *parser) decode(from *source) *parser {
	p.json, p.dec = from, jsontext.NewDecoder(from)
	return p
}

// bounded is a body that fails if it is too long.
type bounded struct {
	r    io.Reader
	most int64
	left int64 // of most
	err  error // of the body, except io.EOF
}

var errBody = errors.New("body too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 { // one more byte distinguishes the end of the body from a longer one
		n, err := b.r.Read(make([]byte, 1))
		if n > 0 {
			err = errBody
		}
		return 0, b.note(err)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, b.note(err)
}

func (b *bounded) note(err error) error {
	if err != nil && err != io.EOF {
		b.err = err
	}
	return err
}

// explain replaces an error by the body's error that caused it.
func (b *bounded) explain(err error) error {
	switch {
	case err == nil || b.err == nil:
		return err
	case errors.Is(b.err, errBody):
		return &Error{ErrTooLarge, "", fmt.Errorf("%w: more than %d bytes", b.err, b.most)}
	}
	return &Error{ErrRead, "", b.err}
}

// parser reads the JSON part.
type parser struct {
	body    *bounded
	header  []byte  // the JSON part if binary data follow
	json    *source // what dec reads
	dec     *jsontext.Decoder
	limits  Limits
	left    int64 // remaining bytes of tensors
	binary  bool
	tensors string  // name of the list of tensors
	sizes   []int64 // of their binary data, -1 for JSON
}

// field maps the members of an object to their readers. place is the path of the member.
type field map[string]func(place string) error

// readObject reads the JSON part, which is one object.
func (p *parser) readObject(fields field) (err error) {
	defer func() {
		err = p.body.explain(err)
		p.json.free()
	}()
	if err := p.object("", fields); err != nil {
		return err
	}
	if _, err := p.dec.ReadToken(); err == nil {
		return invalid("", "extra bytes after the JSON object; binary data require the header %s", HeaderLength)
	} else if err != io.EOF {
		return p.syntax("", err)
	}
	return nil
}

// list reads tensors.
func (p *parser) list(place string, to *[]Tensor) error {
	*to, p.sizes = nil, nil
	return p.array(place, func(place string) error {
		t, size, err := p.tensor(place)
		*to, p.sizes = append(*to, t), append(p.sizes, size)
		return err
	})
}

func (p *parser) outputs(place string, r *Request) error {
	return p.array(place, func(place string) error {
		var o Output
		err := p.object(place, field{
			"name":       func(place string) (err error) { o.Name, err = p.text(place); return err },
			"parameters": func(place string) (err error) { o.Parameters, err = p.parameters(place); return err },
		})
		r.Outputs = append(r.Outputs, o)
		return err
	})
}

// object reads an object. Unknown members are skipped, and members that are null are absent: clients write all fields that
// are not set as null.
func (p *parser) object(place string, fields field) error {
	if err := p.begin(place, '{', "an object"); err != nil {
		return err
	}
	for p.dec.PeekKind() == '"' {
		name, err := p.text(place)
		if err != nil {
			return err
		}
		at := join(place, name)
		if read := fields[name]; read != nil && (p.json.follows(p.dec.UnreadBuffer()) || p.dec.PeekKind() != 'n') {
			err = read(at)
		} else if err = p.dec.SkipValue(); err != nil {
			err = p.syntax(at, err)
		}
		if err != nil {
			return err
		}
	}
	return p.end(place)
}

// array reads an array of at most limits.Inputs elements.
func (p *parser) array(place string, read func(place string) error) error {
	if err := p.begin(place, '[', "an array"); err != nil {
		return err
	}
	for i := 0; p.dec.PeekKind() != ']'; i++ {
		if i == p.limits.Inputs {
			return &Error{ErrTooLarge, place, fmt.Errorf("more than %d elements", i)}
		}
		if err := read(fmt.Sprintf("%s[%d]", place, i)); err != nil {
			return err
		}
	}
	return p.end(place)
}

func (p *parser) begin(place string, kind jsontext.Kind, want string) error {
	if got := p.dec.PeekKind(); got != kind && got != 0 {
		return invalid(place, "%s, want %s", kindOf(got), want)
	}
	return p.end(place)
}

// end reads a delimiter.
func (p *parser) end(place string) error {
	_, err := p.dec.ReadToken()
	return p.syntax(place, err)
}

// syntax returns an error of the JSON itself.
func (p *parser) syntax(place string, err error) error {
	if err == nil {
		return nil
	}
	at, cause := p.dec.InputOffset(), err
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok { // its text has the position and the name of a package
		at, cause = e.ByteOffset, e.Err
	}
	at += p.json.cut
	if cause == io.EOF || errors.Is(cause, io.ErrUnexpectedEOF) {
		return invalid(place, "JSON truncated after %d bytes", at)
	}
	return invalid(place, "invalid JSON at byte %d: %w", at, cause)
}

// kinds are the kinds of JSON values whose names are delimiters.
var kinds = map[jsontext.Kind]string{'[': "an array", '{': "an object", '"': "a string", '0': "a number", 't': "true", 'f': "false",
	'n': "null"}

// kindOf names a kind of JSON values.
func kindOf(k jsontext.Kind) string {
	if name, ok := kinds[k]; ok {
		return name
	}
	return k.String() // a delimiter that ends a value
}

// text reads a string.
func (p *parser) text(place string) (string, error) {
	if got := p.dec.PeekKind(); got != '"' && got != 0 {
		return "", invalid(place, "%s, want a string", kindOf(got))
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return "", p.syntax(place, err)
	}
	s := token.String()
	if len(s) > maxText {
		return "", &Error{ErrTooLarge, place, fmt.Errorf("a string of %d bytes, want at most %d", len(s), maxText)}
	}
	return s, nil
}

// parameters reads an object of parameters.
func (p *parser) parameters(place string) (Parameters, error) {
	if err := p.begin(place, '{', "an object"); err != nil {
		return nil, err
	}
	list := make(Parameters)
	for p.dec.PeekKind() == '"' {
		name, err := p.text(place)
		if err != nil {
			return nil, err
		}
		if len(list) == maxParameters {
			return nil, &Error{ErrTooLarge, place, fmt.Errorf("more than %d parameters", maxParameters)}
		}
		if list[name], err = p.scalar(join(place, name)); err != nil {
			return nil, err
		}
	}
	return list, p.end(place)
}

func (p *parser) scalar(place string) (any, error) {
	switch kind := p.dec.PeekKind(); kind {
	case '"':
		return p.text(place)
	case 't', 'f', '0', 'n':
		text, err := p.dec.ReadValue()
		if err != nil || kind == 'n' {
			return nil, p.syntax(place, err)
		}
		if kind != '0' {
			return kind == 't', nil
		}
		return number(string(text)), nil
	case 0:
		return nil, p.end(place)
	default:
		return nested(kind), p.syntax(place, p.dec.SkipValue())
	}
}

// number returns an int64 or uint64 if possible, else the nearest finite float64.
func number(text string) any {
	if x, err := strconv.ParseInt(text, 10, 64); err == nil {
		return x
	}
	if x, err := strconv.ParseUint(text, 10, 64); err == nil {
		return x
	}
	x, _ := strconv.ParseFloat(text, 64)
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}

func (n nested) String() string { return kindOf(jsontext.Kind(n)) }
