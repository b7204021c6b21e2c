// Package isolate (no compatibility promise) runs programs in processes of their own: [Open]
// starts one and returns a serve.Program, [Work] is the process's side. Tensors are passed in
// shared memory whose size is sealed, everything else in small messages over a socket.
//
// The process is born without privileges ([confine.Thread]) and gives up opening files before
// it serves. What it says is not believed: a message that breaks the rules ends it. When it
// ends, calls that were under way fail with serve.ErrCrashed, each once; instances of it are
// gone; another process takes its place after a while that grows as long as they keep ending.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/hal/confine"
	"github.com/etrun-go/etrun/serve"
)

// ErrPlatform is Open where no process can be isolated.
var ErrPlatform = errors.New("isolated models need Linux on amd64 or arm64")

// errProtocol is a message that breaks the rules.
var errProtocol = errors.New("message of the model's process is not valid")

// Options say how a program is isolated. Zero fields mean the defaults.
type Options struct {
	// Args are those of the process, which is this executable. It calls Work.
	Args []string
	// Files are open in the process from descriptor FirstFile on. They stay open here as long
	// as the program does, which closes them.
	Files []*os.File
	// Libraries are further folders with shared libraries.
	Libraries []string

	Instances int           // calls at once, default 1
	Unbounded int64         // bytes of inputs and of outputs that have no bound, default 64 MiB
	Start     time.Duration // for a process to load its program again, default 5 min
	Grace     time.Duration // for a call to end that nobody waits for; then the process is ended. Default 10 s
	BackOff   BackOff

	Observer etrun.Observer // is told what the process's program does
	Backends []string       // that the observer may be told of
	Log      *slog.Logger
	// Loaded hears of each process's program before anything that it does.
	Loaded func(digest string)
	// Ended hears of each process that ended by itself, and why.
	Ended func(err error)
}

// BackOff is how long to wait before a process is started again. The wait doubles from Least
// to Most each time one ends within ten times the last wait, and begins anew otherwise.
type BackOff struct{ Least, Most time.Duration }

// FirstFile is the descriptor of the first of Options.Files. Lower ones are those of every
// process, the socket and the shared memory.
const FirstFile = 5

// FilePath is the path of the i-th of Options.Files in the process.
func FilePath(i int) string { return fmt.Sprintf("/proc/self/fd/%d", FirstFile+i) }

// Job is what a process does.
type Job struct {
	// Open opens the program, with an observer that reports to the other side. digest is that
	// of its bytes.
	Open func(ctx context.Context, observer etrun.Observer) (p serve.Program, digest string, err error)
	// Methods are those to serve; empty means all.
	Methods   []string
	Instances int
	// Memory bounds the process's own memory in bytes, 0 for no bound. Shared memory and
	// mapped files are not part of it.
	Memory int64
	// Names are paths with what stands for them in messages.
	Names map[string]string
}

// Missing are the layers of confinement that could not be applied.
func Missing(layers []confine.Layer) (list []confine.Layer) {
	for _, l := range layers {
		if l.Err != nil {
			list = append(list, l)
		}
	}
	return list
}
