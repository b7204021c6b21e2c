package pool

import (
	"testing"

	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
)

var set = kernels.NewSet(Ops())

func TestTable(t *testing.T)  { kerneltest.Table(t, set) }
func TestRandom(t *testing.T) { kerneltest.Random(t, set, cases.Of(1000, 3000)) }
func FuzzCall(f *testing.F)   { kerneltest.Fuzz(f, set) }
