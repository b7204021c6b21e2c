package bench

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// Sizes of the measurement of memory: more bytes than most caches have, read several times.
const (
	bandwidthBytes  = 128 << 20
	bandwidthPasses = 8
)

// readBandwidth measures how many bytes a second some threads read from memory together: the best of
// several passes, each over memory that the caches have lost since. It ends with ctx, and is 0 then.
func readBandwidth(ctx context.Context, threads int) float64 {
	buffer := make([]byte, bandwidthBytes)
	for part := range slices.Chunk(buffer, 1<<20) {
		if ctx.Err() != nil {
			return 0
		}
		for i := range part {
			part[i] = 1
		}
	}
	best := time.Duration(1<<63 - 1)
	for range bandwidthPasses {
		if ctx.Err() != nil {
			return 0
		}
		begun := time.Now()
		var group sync.WaitGroup
		for i := range threads {
			part := buffer[len(buffer)*i/threads : len(buffer)*(i+1)/threads]
			group.Go(func() {
				if bytes.IndexByte(part, 0) >= 0 { // reads all of it with vector instructions
					panic("the buffer has changed")
				}
			})
		}
		group.Wait()
		best = min(best, time.Since(begun))
	}
	return float64(len(buffer)) / best.Seconds()
}
