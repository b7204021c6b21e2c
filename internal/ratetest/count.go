//go:build linux

package ratetest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"syscall"
)

var countsFlag = flag.String("rate-counts", "", "count instructions under qemu-user, by a plugin that writes its counts to FILE.N at the system call callWrite with N")

// System calls that no kernel has: the plugin sets its counts to zero, and writes them.
const callZero, callWrite = 7001, 7002

// nanosecondsOf converts executed instructions: four per cycle at 2 GHz.
const nanosecondsOf = 0.125

// countOf counts the instructions of runs, by all threads, and returns those of one as nanoseconds.
func countOf(run Run, runs int) (float64, error) {
	const id = 1
	syscall.Syscall(callZero, 0, 0, 0)
	run(runs)
	syscall.Syscall(callWrite, id, 0, 0)
	data, err := os.ReadFile(fmt.Sprintf("%s.%d", *countsFlag, id))
	if err != nil {
		return 0, err
	}
	sum := uint64(0)
	for len(data) >= 24 { // a block: its address, its length in instructions, its executions, and the instructions
		length := binary.LittleEndian.Uint64(data[8:])
		sum += length * binary.LittleEndian.Uint64(data[16:])
		data = data[min(24+4*length, uint64(len(data))):]
	}
	return float64(sum) / float64(runs) * nanosecondsOf, nil
}
