// Package isolate (no compatibility promise) runs programs in separate processes: [Open] starts one
// and returns a serve.Program, [Work] is the process's side. Tensors are passed in shared memory
// with a sealed size, everything else in small messages over a socket.
//
// The process starts without privileges ([sandbox.Thread]) and drops the right to open files before
// it serves. Its messages are not trusted: it is killed if it violates the protocol. When it ends,
// each pending call fails with serve.ErrCrashed, its instances are gone, and another process
// replaces it after a delay that grows while processes keep ending.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/serve"
)

// ErrPlatform is returned by Open on platforms where processes cannot be isolated.
var ErrPlatform = errors.New("isolated models need Linux on amd64 or arm64")

// errProtocol is a violation of the protocol.
var errProtocol = errors.New("invalid message from the model's process")

// Options configures how a program is isolated. Zero fields mean the defaults.
type Options struct {
	// Args are the arguments of the process, which runs this executable and must call Work.
	Args []string
	// Files are open in the process, from descriptor firstFile on. The program closes them in this
	// process when it is closed.
	Files []*os.File
	// Libraries are additional folders with shared libraries.
	Libraries []string

	Instances int           // concurrent calls, default 1
	Unbounded int64         // bytes of inputs and of outputs without a bound, default 64 MiB
	Shared    int64         // bound of the shared memory in bytes, 0 means no bound
	Start     time.Duration // time limit to load the program after a restart, default 5 min
	Grace     time.Duration // time for a canceled call to return before the process is killed, default 10 s
	BackOff   BackOff

	Observer etrun.Observer // receives the events of the process's program
	Backends []string       // that events may name
	Log      *slog.Logger
	// Loaded is called for each process, before any event of its program.
	Loaded func(digest string)
	// Ended is called for each process that ended unexpectedly, with the reason.
	Ended func(err error)
}

// BackOff is the delay before a process is restarted. It doubles from Min to Max each time a
// process ends within ten times the last delay, and starts at Min again otherwise.
type BackOff struct{ Min, Max time.Duration }

// firstFile is the descriptor of the first of Options.Files. Lower ones are the standard streams,
// the socket and the shared memory.
const firstFile = 5

// FilePath returns the path of the i-th of Options.Files in the process.
func FilePath(i int) string { return fmt.Sprintf("/proc/self/fd/%d", firstFile+i) }

// Job describes the work of a process.
type Job struct {
	// Open opens the program, with an observer that forwards events. digest is that of its bytes.
	Open func(ctx context.Context, observer etrun.Observer) (p serve.Program, digest string, err error)
	// Methods are the methods to serve; empty means all.
	Methods   []string
	Instances int
	// Memory bounds the process's own memory in bytes, 0 means no bound. Shared memory and mapped
	// files do not count.
	Memory int64
	// Names maps paths to the names that replace them in messages.
	Names map[string]string
}

// Missing returns the layers of confinement that could not be applied.
func Missing(layers []sandbox.Layer) (list []sandbox.Layer) {
	for _, l := range layers {
		if l.Err != nil {
			list = append(list, l)
		}
	}
	return list
}
