package portable

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
)

var set = kernels.NewSet(Ops())

func TestTable(t *testing.T) { kerneltest.Table(t, set) }

func TestCalls(t *testing.T) { kerneltest.Calls(t, set) }

// TestRandomCalls has the operators of all packages below: calls depend on the name of the operator alone.
func TestRandomCalls(t *testing.T) { kerneltest.Random(t, set, 200) }

func FuzzOps(f *testing.F) { kerneltest.Fuzz(f, set) }
