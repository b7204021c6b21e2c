package lower

import (
	"context"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/runtime/ir"
)

// lowering is the state of the pass.
type lowering struct {
	Backends
	*flow
	ctx      context.Context
	report   *Report
	edit     *ir.Edit // nil until a region was taken
	left     int      // work of partitioning
	sets     []uint64 // memory of partitions
	first    int      // delegates that the file has
	accepted int
	never    int           // a value that is false, plus one; 0 if there is none yet
	sized    []bool        // see computedSizes; for a file only
	users    map[int][]int // see viewed; for a file only
}

// candidate is a cluster that may become a region.
type candidate struct {
	steps   []int  // of the block
	graph   *graph // nil if it cannot be taken
	kind    int    // of its steps
	taker   regions.Compiler
	work    regions.Work
	reason  string // why it cannot be taken
	inputs  int
	outputs int
	share   float64
}

// isPayload reports whether the cluster consists of a single payload.
func (c *candidate) isPayload() bool {
	payloads, others := 0, 0
	for i := range c.graph.Calls {
		switch call := &c.graph.Calls[i]; {
		case call.Payload != nil:
			payloads++
		case !call.View:
			others++
		}
	}
	return payloads == 1 && others == 0
}

// Region is a part of a method that a backend could run as a whole.
type Region struct {
	Backend      string
	Delegate     int         // index in the method's list of delegates, -1 if not taken
	Calls        []ir.Origin // in file order
	Merged       []int       // delegates of the file whose payloads it includes
	Inputs       int         // tensors that it reads, without constants
	Outputs      int         // tensors of it that others read
	regions.Work             // zero if the backend was not asked
	// Share is the minimum fraction of the declared elements that inputs of varying sizes must have
	// for the backend to run it; with fewer its calls are executed.
	Share  float64
	Reason string // why it was not taken, "" if it was
}

// Call is the outcome of an instruction.
type Call struct {
	Name   string
	Origin ir.Origin
	Region int    // index, -1 for none
	Reason string // why it is in none
}

// Report is the outcome of a method, instruction by instruction.
type Report struct {
	Regions []Region
	Calls   []Call
}

// Accepted counts the regions that backends run.
func (r *Report) Accepted() (n int) {
	for i := range r.Regions {
		if r.Regions[i].Delegate >= 0 {
			n++
		}
	}
	return n
}

// Drop marks all regions as not taken.
func (r *Report) Drop(why string) {
	for i := range r.Regions {
		if r.Regions[i].Delegate >= 0 {
			r.Regions[i].Delegate, r.Regions[i].Reason = -1, why
		}
	}
	for i := range r.Calls {
		if r.Calls[i].Region >= 0 {
			r.Calls[i].Reason = r.Regions[r.Calls[i].Region].Reason
		}
	}
}

// because sets the reason of all instructions.
func (r *Report) because(why string) {
	for i := range r.Calls {
		r.Calls[i].Reason = why
	}
}

// Backends configures which compilers may take regions of a method, and when.
type Backends struct {
	Compilers []regions.Compiler // the first one that accepts a call takes it
	All       bool               // regions are taken whatever their work is
	// Portable means that calls outside of regions run on the operators of ExecuTorch's portable library.
	Portable bool
	// Payloads are the opened payloads of the method's delegates, by delegate, that have no image
	// yet: they may be merged with the calls around them.
	Payloads []Payload
	Dataflow *ir.Flow // of the method, nil if it is not known
	// Contradiction is why nothing is lowered, "" if something may be.
	Contradiction string
	// InFile means that the result will be written to a file. A region then replaces its calls for all sizes.
	InFile bool
	// Compile makes the image of delegate g.Index of the method. After an error that does not come
	// from ctx the region's calls stay unchanged.
	Compile func(ctx context.Context, c regions.Compiler, g *regions.Graph) error
}

// because records why step i of the block is not lowered.
func (l *lowering) because(i int, why string) { l.report.Calls[l.from+i].Reason = why }
