package main

import (
	"fmt"
	"strconv"
	"strings"

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

// Set adds one output.
func (q *quantizations) Set(s string) error {
	method, rest, ok := strings.Cut(s, "/")
	if !ok {
		method, rest = "", s
	}
	place, value, hasValue := strings.Cut(rest, "=")
	delegate, output, hasOutput := strings.Cut(place, ":")
	scale, zero, hasZero := strings.Cut(value, ",")
	o := ethosu.Quantization{Method: method}
	var errs [4]error
	o.Delegate, errs[0] = strconv.Atoi(delegate)
	o.Output, errs[1] = strconv.Atoi(output)
	o.Scale, errs[2] = strconv.ParseFloat(scale, 64)
	o.ZeroPoint, errs[3] = strconv.ParseInt(zero, 10, 64)
	if !hasValue || !hasOutput || !hasZero || errs != [4]error{} {
		return fmt.Errorf("%q, want [METHOD/]DELEGATE:OUTPUT=SCALE,ZERO such as 0:0=0.018,-3", s)
	}
	*q = append(*q, o)
	return nil
}
