package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Target is the file of one output.
type Target struct {
	Call, Index int
	Path        string
	Kind        string // key of writers
	Rate        int    // samples per second, for recordings

	text string
	file *File
	done bool
}

// writers write an output in each file format.
var writers = map[string]func(io.Writer, *Target, *tensor.Value) error{
	"bin": writeRaw, "npy": writeArray, "json": writeJSON, "png": writePNG, "wav": writeWave,
}

// kindWords lists the file formats.
const kindWords = "npy, json, png, wav or bin"

var (
	targetPrefix = lazy.Pattern(`^(?:call([0-9]+)_)?(?:out)?([0-9]+)=`)
	targetTail   = lazy.Pattern(`(?::(npy|json|png|wav|bin))?(?::rate=([0-9]+))?$`)
)

// ErrTarget is the class of errors in an argument's text; match with errors.Is.
var ErrTarget = errors.New("output argument")

// ParseTarget parses [OUTPUT=]FILE[:KIND][:rate=N], where OUTPUT is an index, out0 or
// call1_out0, and KIND overrides the extension.
func ParseTarget(text string) (*Target, error) {
	t := &Target{text: text}
	rest := text
	if m := targetPrefix().FindStringSubmatch(text); m != nil {
		t.Call, _ = strconv.Atoi(m[1])
		t.Index, _ = strconv.Atoi(m[2]) // a number too large matches no output
		rest = text[len(m[0]):]
	}
	m := targetTail().FindStringSubmatch(rest)
	t.Kind = m[1]
	t.Rate, _ = strconv.Atoi(m[2]) // a number too large fails when it is written
	rest = strings.TrimSuffix(rest, m[0])
	if t.Path = rest; t.Path == "" {
		return nil, fmt.Errorf("%w %q: want a file", ErrTarget, text)
	}
	if t.Kind == "" {
		t.Kind = strings.ToLower(strings.TrimPrefix(filepath.Ext(t.Path), "."))
	}
	if writers[t.Kind] == nil {
		return nil, fmt.Errorf("%w %q: unknown extension; append :KIND, one of %s", ErrTarget, text, kindWords)
	}
	if t.Kind == "wav" && t.Rate == 0 {
		return nil, fmt.Errorf("%w %q: append :rate=N, the samples per second", ErrTarget, text)
	}
	return t, nil
}

// Create creates the file, before anything runs.
func (t *Target) Create(ctx context.Context) (err error) {
	t.file, err = CreateFile(ctx, t.Path)
	return err
}

// Add writes the target's output of call k; it does nothing for other calls.
func (t *Target) Add(k int, outputs []*tensor.Value) error {
	if k != t.Call || t.done {
		return nil
	}
	if t.Index >= len(outputs) {
		return fmt.Errorf("%w %q: no output %d, the method has %d", ErrTarget, t.text, t.Index, len(outputs))
	}
	t.done = true
	if err := writers[t.Kind](t.file, t, outputs[t.Index]); err != nil {
		return &Error{fmt.Errorf("%s: %w", t.Path, err)}
	}
	return nil
}

// Commit completes the file.
func (t *Target) Commit() error {
	if !t.done {
		return fmt.Errorf("%w %q: no call %d", ErrTarget, t.text, t.Call)
	}
	if err := t.file.Commit(); err != nil {
		return &Error{err}
	}
	return nil
}

// Close removes an uncommitted file.
func (t *Target) Close() {
	if t.file != nil {
		t.file.Close()
	}
}

// tensorOf returns a value as a tensor; numbers have rank 0.
func tensorOf(v *tensor.Value) (*tensor.Tensor, error) {
	switch v.Kind {
	case tensor.KindTensor:
		return v.Tensor, nil
	case tensor.KindInt:
		return tensor.Of([]int64{v.Int}), nil
	case tensor.KindDouble:
		return tensor.Of([]float64{v.Double}), nil
	case tensor.KindBool:
		return tensor.Of([]bool{v.Bool}), nil
	}
	return nil, fmt.Errorf("an output of kind %v is not a tensor or number", v.Kind)
}

// floats returns the elements of a real tensor in logical order.
func floats(t *tensor.Tensor) ([]float64, error) {
	load := tensor.Loader[float64](t.DType)
	if load == nil {
		return nil, fmt.Errorf("elements of %v are not real numbers", t.DType)
	}
	values := make([]float64, t.Numel())
	load(values, t.Logical())
	return values, nil
}

// squeezed returns the sizes other than 1.
func squeezed(sizes []int) []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n == 1 })
}
