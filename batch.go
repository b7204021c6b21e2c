package etrun

import (
	"context"
	"fmt"
	"sync"

	"github.com/etrun-go/etrun/runtime/exec"
)

// Batch executes instances of one method together. Steps that compute each row of their tensors from the same row of their
// operands, such as the layers of a language model for each token, run once for all instances, in memory of the batch; the
// others, such as those that use the state of an instance, run in each, for several instances at a time if the program has several
// threads. An instance that takes part has a call of one row, such as one token.
//
// Results are those of [Method.Execute], except that engines may round sums in another order if they compute several rows.
// A batch is safe for concurrent use; calls wait for each other.
type Batch struct {
	mu     sync.Mutex
	in     *exec.Batch
	method string
	list   []*exec.Instance // of a run
	closed bool
}

// BatchError is the reason why instances of a method do not run together.
type BatchError struct {
	Method string
	Reason string
}

func (e *BatchError) Error() string {
	return withCode(fmt.Sprintf("method %q: %s", e.Method, e.Reason), ErrUnsupported, nil)
}

// Unwrap returns [ErrUnsupported].
func (e *BatchError) Unwrap() error { return ErrUnsupported }

// NewBatch returns a batch for at most n instances of the method, m among them. The last run of m must have succeeded in a call
// of one row. Its sizes show which tensors have a row for each row of the inputs, so other sizes that vary should not have
// been 1, such as the number of tokens before in a cache. The batch keeps the program open. Errors are *BatchError, if
// nothing would run together, and those of [Program.Load].
func (m *Method) NewBatch(ctx context.Context, n int) (*Batch, error) {
	b, err := m.in.NewBatch(n)
	if err != nil {
		return nil, err
	}
	p := m.program
	if err := p.acquire(); err != nil {
		return nil, err
	}
	if err := b.Build(ctx); err != nil {
		p.release()
		return nil, loadError(p.path(), m.Name(), err, ErrFormat)
	}
	return &Batch{in: b, method: m.Name()}, nil
}

// Rows returns the largest number of instances that run together.
func (b *Batch) Rows() int { return b.in.Rows() }

// Steps returns the numbers of instructions that run once for all instances, and in each of them.
func (b *Batch) Steps() (batched, separate int) { return b.in.Steps() }

// Bytes returns the memory of the batch: see [Method.Memory].
func (b *Batch) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.in.Bytes()
}

// Close frees the batch. It does not close the instances. Closing twice is allowed.
func (b *Batch) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.in.Close()
}

// Execute runs instances of the method on the inputs that were set, and sets errs[i] to the error of list[i], as
// [Method.Execute] returns it. Instances whose call has not exactly one row, those beyond the number of [Batch.Rows], and those
// whose instructions an observer of their own, or whose nodes or values any observer receives, run alone. Observers of the
// program receive instructions that run together as those of one more instance. After the first run of so many instances
// Execute allocates nothing.
//
// An instance whose tensors turn out to have other sizes than in the run that the batch was made from fails with a *BatchError; its
// state is then undefined, and it should run alone. The error that Execute itself returns is that of a run that failed for
// all, which errs has too.
func (b *Batch) Execute(ctx context.Context, list []*Method, errs []error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("batch of method %q: %w", b.method, ErrClosed)
	}
	b.list = b.list[:0]
	for _, m := range list {
		b.list = append(b.list, m.in)
	}
	defer clear(b.list)
	return b.in.Execute(ctx, b.list, errs)
}
