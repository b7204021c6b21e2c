package factory

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
)

var set = kernels.NewSet(Ops())

func TestTable(t *testing.T) { kerneltest.Table(t, set) }

func TestRandomCalls(t *testing.T) { kerneltest.Random(t, set, 400) }

func FuzzCalls(f *testing.F) { kerneltest.Fuzz(f, set) }
