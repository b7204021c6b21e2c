package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
)

// quantizations is the flag --qparams: outputs of delegates with their scale and zero
// point.
type quantizations []ethosu.Quantization

func (q *quantizations) Type() string { return "qparams" }

func (q *quantizations) String() string {
	var s []string
	for _, o := range *q {
		method := ""
		if o.Method != "" {
			method = o.Method + "/"
		}
		s = append(s, fmt.Sprintf("%s%d:%d=%v,%d", method, o.Delegate, o.Output, o.Scale, o.ZeroPoint))
	}
	return strings.Join(s, " ")
}

// Set adds one output, or those of a file.
func (q *quantizations) Set(s string) error {
	if strings.HasSuffix(s, ".json") {
		return q.read(s)
	}
	method, rest, ok := strings.Cut(s, "/")
	if !ok {
		method, rest = "", s
	}
	place, value, hasValue := strings.Cut(rest, "=")
	index, output, hasOutput := strings.Cut(place, ":")
	scale, zero, hasZero := strings.Cut(value, ",")
	o := ethosu.Quantization{Method: method}
	var errs [4]error
	o.Delegate, errs[0] = strconv.Atoi(index)
	o.Output, errs[1] = strconv.Atoi(output)
	o.Scale, errs[2] = strconv.ParseFloat(scale, 64)
	o.ZeroPoint, errs[3] = strconv.ParseInt(zero, 10, 64)
	if !hasValue || !hasOutput || !hasZero || errs != [4]error{} {
		return fmt.Errorf("%q, want [METHOD/]DELEGATE:OUTPUT=SCALE,ZERO such as 0:0=0.018,-3, or FILE.json", s)
	}
	*q = append(*q, o)
	return nil
}

// maxQuantizations is the largest file of quantisations, in bytes.
const maxQuantizations = 1 << 20

// quantizationJSON is one output in a file. All but the method must be given.
type quantizationJSON struct {
	Method    string   `json:"method"`
	Delegate  *int     `json:"delegate"`
	Output    *int     `json:"output"`
	Scale     *float64 `json:"scale"`
	ZeroPoint *int64   `json:"zero_point"`
}

// read adds the outputs of a file: a JSON array of objects.
func (q *quantizations) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, maxQuantizations))
	d.DisallowUnknownFields()
	var list []quantizationJSON
	if err := d.Decode(&list); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if d.More() {
		return fmt.Errorf("%s: more than one array, or more than %d bytes", path, maxQuantizations)
	}
	for i, o := range list {
		if o.Delegate == nil || o.Output == nil || o.Scale == nil || o.ZeroPoint == nil {
			return fmt.Errorf("%s: entry %d: want delegate, output, scale and zero_point", path, i)
		}
		*q = append(*q, ethosu.Quantization{Method: o.Method, Delegate: *o.Delegate, Output: *o.Output,
			Quantization: delegate.Quantization{Scale: *o.Scale, ZeroPoint: *o.ZeroPoint}})
	}
	return nil
}
