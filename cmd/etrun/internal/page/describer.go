package page

import (
	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// describer describes one method.
type describer struct {
	program *etrun.Program
	spec    *pte.Method
	ir      *ir.Method // nil if the method does not load
	infos   []delegate.Info
	nodes   *int // remaining limit
}
