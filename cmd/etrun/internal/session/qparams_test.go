package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
)

func TestQuantizations(t *testing.T) {
	good := map[string]ethosu.Quantization{
		"0:0=0.018,-3":         {Quantization: delegate.Quantization{Scale: 0.018, ZeroPoint: -3}},
		"forward/2:1=1e-3,128": {Method: "forward", Delegate: 2, Output: 1, Quantization: delegate.Quantization{Scale: 1e-3, ZeroPoint: 128}},
	}
	for s, want := range good {
		var q quantizations
		if err := q.Set(s); err != nil || q[0].output != want || q.String() != s {
			t.Errorf("%q: got %v, %v, want %v", s, q, err, want)
		}
	}
	for _, s := range []string{"", "0", "0:0", "0:0=1", "0=1,2", "a:0=1,2", "0:0=x,2", "0:0=1,2.5"} {
		var q quantizations
		if err := q.Set(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, q)
		}
	}
}

func TestQuantizationFiles(t *testing.T) {
	good := []ethosu.Quantization{{Quantization: delegate.Quantization{Scale: 0.018, ZeroPoint: -3}},
		{Method: "forward", Delegate: 2, Output: 1, Quantization: delegate.Quantization{Scale: 1}}}
	for _, c := range []struct {
		text string
		want []ethosu.Quantization // nil for an error
	}{
		{`[{"delegate":0,"output":0,"scale":0.018,"zero_point":-3},
		  {"method":"forward","delegate":2,"output":1,"scale":1,"zero_point":0}]`, good},
		{`[]`, []ethosu.Quantization{}},
		{text: ``},
		{text: `{}`},
		{text: `[{"delegate":0,"output":0,"scale":0.018}]`},
		{text: `[{"delegate":0,"output":0,"scale":0.018,"zero_point":-3.5}]`},
		{text: `[{"delegate":0,"output":0,"scale":0.018,"zero_point":-3,"axis":1}]`},
		{text: `[] []`},
		{text: `[] ]`},
	} {
		path := filepath.Join(t.TempDir(), "q.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var q quantizations
		if err := q.Set(path); err != nil {
			t.Fatal(err)
		}
		got, err := q.read(t.Context(), nil)
		if (err != nil) != (c.want == nil) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}
