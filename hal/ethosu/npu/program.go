package npu

import (
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Network is a program bound to its memory. It is safe for concurrent use.
type Network struct {
	program *Program
	budget  int                             // maximum number of decoded weights
	ready   []atomic.Pointer[packedWeights] // per operation
	mu      sync.Mutex                      // serializes the decoding of weights
}

// Program is a command stream with all operations decoded. It is immutable and independent of
// memory contents.
type Program struct {
	Config isa.Config
	ops    []operation
	needs  needs // per thread
	chains [isa.NumRegions]int
	kept   int
	staged int
	scales int // channels
	matmul int // weights of the largest dynamic weights
}

// decoder decodes a stream into a program.
type decoder struct {
	config isa.Config
	u85    bool
	regs   registers
	p      *Program
	work   int64

	chained [isa.NumRegions]fmap // contents of the chain buffers
	left    *kernelOp            // the operation that left its accumulators
	waits   waits                // before the next operation
	stopped bool
}

// waits are the waits for earlier operations, by DMA and by others: the number that may be
// unfinished, plus 1; 0 means no wait.
type waits struct{ dma, kernels int }
