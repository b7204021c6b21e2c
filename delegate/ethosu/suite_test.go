package ethosu

import (
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestSuite runs the conformance suite of backends on the software NPU, on a program and on compiled operations.
func TestSuite(t *testing.T) {
	program, err := os.ReadFile("../../testdata/ethosu/programs/digits.pte")
	if err != nil {
		t.Fatal(err)
	}
	delegatetest.Run(t, Backend{}, ptetest.Payloads(t, program, ID)...)
	vectors := ethosutest.Vectors(t, "*")
	for i := 0; i < len(vectors); i += 8 {
		v := vectors[i]
		specs, _ := args(t, v.Payload())
		delegatetest.Run(t, Backend{}, &delegate.Payload{Method: v.Name, Data: v.Payload(), Args: specs})
	}
}
