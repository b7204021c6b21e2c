package main

import (
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
		if err := q.Set(s); err != nil || q[0] != want || q.String() == "" {
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
