package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/openfile"
)

// quantizations is the value of --qparams: scales and zero points of outputs of delegates,
// and files of them.
type quantizations []quantization

// quantization is one argument of the flag.
type quantization struct {
	text   string
	output ethosu.Quantization // if the text is not a file
}

func (q *quantizations) Type() string { return "qparams" }

func (q *quantizations) String() string {
	return strings.Join(q.GetSlice(), " ")
}

// GetSlice are the arguments.
func (q *quantizations) GetSlice() (list []string) {
	for _, a := range *q {
		list = append(list, a.text)
	}
	return list
}

// isFile reports whether the argument is a file, which is read when the program is opened.
func (a *quantization) isFile() bool { return strings.HasSuffix(a.text, ".json") }

// Set adds one output, or a file of them.
func (q *quantizations) Set(s string) (err error) {
	a := quantization{text: s}
	if !a.isFile() {
		a.output, err = parseQuantization(s)
	}
	*q = append(*q, a)
	return err
}

func parseQuantization(s string) (o ethosu.Quantization, err error) {
	method, rest, ok := strings.Cut(s, "/")
	if !ok {
		method, rest = "", s
	}
	place, value, hasValue := strings.Cut(rest, "=")
	index, output, hasOutput := strings.Cut(place, ":")
	scale, zero, hasZero := strings.Cut(value, ",")
	o.Method = method
	var errs [4]error
	o.Delegate, errs[0] = strconv.Atoi(index)
	o.Output, errs[1] = strconv.Atoi(output)
	o.Scale, errs[2] = strconv.ParseFloat(scale, 64)
	o.ZeroPoint, errs[3] = strconv.ParseInt(zero, 10, 64)
	if !hasValue || !hasOutput || !hasZero || errs != [4]error{} {
		return o, fmt.Errorf("%q, want [METHOD/]DELEGATE:OUTPUT=SCALE,ZERO such as 0:0=0.018,-3, or FILE.json", s)
	}
	return o, nil
}

// read returns all outputs, including those of files, in the order of the command line.
func (q quantizations) read(ctx context.Context, check func(context.Context, string, []byte) error) ([]ethosu.Quantization, error) {
	var all []ethosu.Quantization
	for i := range q {
		if !q[i].isFile() {
			all = append(all, q[i].output)
			continue
		}
		outputs, err := readQuantizations(ctx, q[i].text, check)
		if err != nil {
			return nil, err
		}
		all = append(all, outputs...)
	}
	return all, nil
}

// maxQuantizations is the maximum size of a file of quantizations in bytes.
const maxQuantizations = 1 << 20

// quantizationJSON is one output in a file. All fields but the method are required.
type quantizationJSON struct {
	Method    string   `json:"method"`
	Delegate  *int     `json:"delegate"`
	Output    *int     `json:"output"`
	Scale     *float64 `json:"scale"`
	ZeroPoint *int64   `json:"zero_point"`
}

// readQuantizations reads a file: a JSON array of objects. Its bytes are checked first, unless check is nil.
func readQuantizations(ctx context.Context, path string, check func(context.Context, string, []byte) error) ([]ethosu.Quantization, error) {
	text, err := openfile.ReadFile(ctx, path, openfile.Rules{Kinds: openfile.Pipes, Limit: maxQuantizations})
	if err == nil && check != nil {
		err = check(ctx, path, text)
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var list []quantizationJSON
	if err := d.Decode(&list); err != nil {
		return nil, Usage("%s: %w", path, jsonerror.Plain(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, Usage("%s: more than one array", path)
	}
	outputs := make([]ethosu.Quantization, len(list))
	for i, o := range list {
		if o.Delegate == nil || o.Output == nil || o.Scale == nil || o.ZeroPoint == nil {
			return nil, Usage("%s: entry %d: want delegate, output, scale and zero_point", path, i)
		}
		outputs[i] = ethosu.Quantization{Method: o.Method, Delegate: *o.Delegate, Output: *o.Output,
			Quantization: delegate.Quantization{Scale: *o.Scale, ZeroPoint: *o.ZeroPoint}}
	}
	return outputs, nil
}
