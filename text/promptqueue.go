package text

import (
	"context"

	"github.com/etrun-go/etrun/hal/cpu"
)

// promptQueue bounds how many parts of prompts the sessions of a model compute at once: as many as keep the processors busy. More
// would leave a smaller share of the processors to the texts that are being generated. Sessions wait in order, for each part again, so
// that prompts of any length and number go on together.
type promptQueue chan struct{}

func newPromptQueue(threads int) promptQueue {
	return make(promptQueue, max(cpu.DefaultThreads()/threads, 1))
}

// acquire waits until a part may be computed; release ends that.
func (q promptQueue) acquire(ctx context.Context) error {
	select {
	case q <- struct{}{}: // senders are served in order
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q promptQueue) release() { <-q }
