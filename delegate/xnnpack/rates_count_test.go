//go:build linux

package xnnpack

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"syscall"
	"testing"
)

var countsFlag = flag.String("rate-counts", "", "with -measure-rates under qemu-user: count instructions by a plugin that writes its counts to FILE.N at the system call callWrite with N")

// System calls that no kernel has: the plugin sets its counts to zero, and writes them.
const callZero, callWrite = 7001, 7002

// nanosecondsOf converts executed instructions: four per cycle at 2 GHz, which is about what the estimates of operators assume.
const nanosecondsOf = 0.125

// countRuns counts the instructions of a run and returns them as nanoseconds. Counts repeat, so one is enough.
func countRuns(t *testing.T, run func(n int)) float64 {
	const runs, id = 2, 1
	syscall.Syscall(callZero, 0, 0, 0)
	run(runs)
	syscall.Syscall(callWrite, id, 0, 0)
	path := fmt.Sprintf("%s.%d", *countsFlag, id)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for len(data) >= 24 { // a block: its address, its length in instructions, its executions, and the instructions
		length := binary.LittleEndian.Uint64(data[8:])
		sum += length * binary.LittleEndian.Uint64(data[16:])
		data = data[24+4*length:]
	}
	return float64(sum) / runs * nanosecondsOf
}
