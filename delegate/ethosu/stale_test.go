package ethosu

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// stalePayload returns delegate index of a program that declares its output as float32.
func stalePayload(t *testing.T, index int) (*ethosutest.Vector, *delegate.Payload) {
	t.Helper()
	v := ethosutest.Find(t, "u55-128/conv3x3/d0")
	specs, _ := args(t, v.Payload())
	specs[1] = arg(tensor.Float32, specs[1].Sizes...)
	return v, &delegate.Payload{Method: "forward", Index: index, Data: v.Payload(), Args: specs}
}

// TestQuantizationDisagrees quantizes an output in two ways, which is an error only if its type is
// stale and both use the NPU's integer type.
func TestQuantizationDisagrees(t *testing.T) {
	uses := []delegate.QuantUse{
		{Quantization: delegate.Quantization{Scale: 0.5}, DType: tensor.Int8, By: "instruction 1 (x)"},
		{Quantization: delegate.Quantization{Scale: 0.5, ZeroPoint: 1}, DType: tensor.Int8, By: "instruction 4 (y)"},
		{Quantization: delegate.Quantization{Scale: 0.1}, DType: tensor.Int16, By: "instruction 5 (z)"},
	}
	given := []Quantization{{Delegate: 2, Quantization: delegate.Quantization{Scale: 2}}}
	for name, tt := range map[string]struct {
		dtype tensor.DType // declared
		uses  []delegate.QuantUse
		list  []Quantization
		scale float32
		want  string // part of the error
	}{
		"two of the NPU's type":     {dtype: tensor.Float32, uses: uses, want: "value 7: instruction 1 (x) uses scale 0.5 and zero point 0, instruction 4 (y) uses scale 0.5 and zero point 1"},
		"one of another type":       {dtype: tensor.Float32, uses: uses[1:], scale: 0.5},
		"only one of another type":  {dtype: tensor.Float32, uses: uses[2:], want: "declared float32"},
		"the true type":             {dtype: tensor.Int8, uses: uses},
		"set by the caller":         {dtype: tensor.Float32, uses: uses, list: given, scale: 2},
		"wider integers":            {dtype: tensor.Int16, uses: uses[2:], scale: 0.1},
		"wider integers, two sizes": {dtype: tensor.Int16, uses: uses[1:], want: "quantization unknown"},
	} {
		_, p := stalePayload(t, 2)
		out := *p.Args[1]
		out.DType, out.Value, out.Quants = tt.dtype, 7, tt.uses
		p.Args[1] = &out
		img, err := Backend{QParams: tt.list}.Compile(t.Context(), p)
		if tt.want != "" {
			if !errors.Is(err, delegate.ErrPayload) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want …%s…", name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := img.(*image).outputs[0].scale; got != tt.scale {
			t.Errorf("%s: scale %v, want %v", name, got, tt.scale)
		}
		img.Close()
	}
}

// TestSurvey lists the stale outputs of several delegates at once; errors that no quantization
// fixes take precedence.
func TestSurvey(t *testing.T) {
	var payloads []*delegate.Payload
	for _, index := range []int{0, 3, 7} {
		_, p := stalePayload(t, index)
		payloads = append(payloads, p)
	}
	b := Backend{QParams: []Quantization{{Delegate: 3, Quantization: delegate.Quantization{Scale: 1}}}}
	err := b.Survey(payloads)
	stale, ok := errors.AsType[*StaleError](err)
	if !ok || !errors.Is(err, delegate.ErrPayload) || len(stale.Outputs) != 2 || stale.Outputs[1].Delegate != 7 {
		t.Fatalf("got %v, want outputs of delegates 0 and 7", err)
	}
	for _, want := range []string{"stale type of 2 outputs: delegate 0 output 0, sizes 1x", "; delegate 7 output 0, ",
		`[{"method": "forward", "delegate": 0, "output": 0, "scale": SCALE, "zero_point": ZERO}, {"method": "forward", "delegate": 7,`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	if err := b.Survey(payloads[1:2]); err != nil {
		t.Errorf("with the quantization: %v", err)
	}
	payloads[2].Args = append(payloads[2].Args, payloads[2].Args[1]) // an output that the compiler dropped
	if err := b.Survey(payloads); err == nil || !strings.Contains(err.Error(), "delegate 7") || !strings.Contains(err.Error(), "but the program's call has 3 arguments") {
		t.Errorf("got %v, want the dropped output", err)
	}
}

// TestStaleErrorText checks the limit on listed outputs.
func TestStaleErrorText(t *testing.T) {
	e := &StaleError{Outputs: make([]StaleOutput, 1000)}
	for i := range e.Outputs {
		e.Outputs[i] = StaleOutput{Delegate: i, Declared: tensor.Float32, Written: tensor.Int8}
	}
	if s := e.Error(); !strings.Contains(s, "and 744 more;") || !strings.HasSuffix(s, ", …]") || strings.Count(s, `"delegate"`) != maxListed {
		t.Errorf("got %.200s", s)
	}
}

// TestCalibrate requests the quantization in the run, with the values that the NPU wrote.
func TestCalibrate(t *testing.T) {
	v, p := stalePayload(t, 2)
	var asked Calibration
	b := Backend{Calibrate: func(c *Calibration) (delegate.Quantization, error) {
		asked = *c
		for i, want := range v.Files["out0.bin"] {
			if c.Stored[i] != int32(int8(want)) {
				return delegate.Quantization{}, fmt.Errorf("element %d: %d, want %d", i, c.Stored[i], int8(want))
			}
		}
		return delegate.Quantization{Scale: 0.25, ZeroPoint: -2}, nil
	}}
	checkStaleType(t, b, v, p)
	if asked.Method != "forward" || asked.Delegate != 2 || asked.Output != 0 || asked.Declared != tensor.Float32 || asked.Known != nil {
		t.Errorf("asked for %+v", asked.StaleOutput)
	}
	for name, q := range map[string]delegate.Quantization{"no scale": {}, "a zero point out of range": {Scale: 1, ZeroPoint: 1 << 40}} {
		b.Calibrate = func(*Calibration) (delegate.Quantization, error) { return q, nil }
		c, err := b.newCall(t, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.unit.Execute(t.Context(), c.values); !errors.Is(err, delegate.ErrArgument) {
			t.Errorf("%s: got %v, want %v", name, err, delegate.ErrArgument)
		}
	}
}
