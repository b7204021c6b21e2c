package bench

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
)

// Sizes of the measurement of memory: more bytes than most caches have, read several times.
const (
	bandwidthBytes  = 128 << 20
	bandwidthPasses = 4 // for each number of streams
	streamBytes     = 16 << 10
)

// streams are how many places a thread reads from in turns. Some processors need several to read as fast as their memory allows,
// others are slower with them.
var streams = []int{1, 2, 4}

// readBandwidth measures how many bytes a second some threads read from memory together: the best of
// several passes, each over memory that the caches have lost since. It ends with ctx, and is 0 then, and where twice the bytes are not
// left for the process: the kernel would end it.
func readBandwidth(ctx context.Context, threads int) float64 {
	if left := cpu.Available(); left > 0 && left < 2*bandwidthBytes {
		return 0
	}
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
		for _, n := range streams {
			if ctx.Err() != nil {
				return 0
			}
			begun := time.Now()
			readBy(buffer, threads, n)
			best = min(best, time.Since(begun))
		}
	}
	return float64(len(buffer)) / best.Seconds()
}

// readBy reads a buffer by several threads, each of which reads from several places in turns.
func readBy(buffer []byte, threads, streams int) {
	var group sync.WaitGroup
	for i := range threads {
		part := buffer[len(buffer)*i/threads : len(buffer)*(i+1)/threads]
		group.Go(func() {
			for at := range (len(part)/streams + streamBytes - 1) / streamBytes {
				for k := range streams {
					stream := part[len(part)*k/streams : len(part)*(k+1)/streams]
					stream = stream[min(at*streamBytes, len(stream)):]
					if bytes.IndexByte(stream[:min(streamBytes, len(stream))], 0) >= 0 { // reads with vector instructions
						panic("the buffer has changed")
					}
				}
			}
		})
	}
	group.Wait()
}
