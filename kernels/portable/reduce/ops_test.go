package reduce_test

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/portable/reduce"
)

var set = kernels.NewSet(reduce.Ops())

func TestTable(t *testing.T)  { kerneltest.Table(t, set) }
func TestRandom(t *testing.T) { kerneltest.Random(t, set, 400) }
func FuzzOps(f *testing.F)    { kerneltest.Fuzz(f, set) }
