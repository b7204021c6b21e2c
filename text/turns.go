package text

import (
	"context"

	"github.com/etrun-go/etrun/hal/cpu"
)

// turns bounds how many parts of prompts the sessions of a model compute at once: as many as keep the processors busy. More would
// finish no earlier, and texts that are being generated would get a smaller share of the processors. Sessions wait in order for each
// part, so that prompts of any length and number go on together.
type turns chan struct{}

func newTurns(threads int) turns { return make(turns, max(cpu.DefaultThreads()/threads, 1)) }

// take waits for a turn, which end ends.
func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}: // the runtime serves senders in order
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turns) end() { <-t }
