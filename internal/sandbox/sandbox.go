// Package sandbox (no compatibility promise) irrevocably restricts the rights of a process that
// reads untrusted files.
//
// First a thread is confined: the process that it starts has no capabilities, and landlock
// restricts its use of files, sockets and signals. That process then restricts its own system
// calls: [Filter] allows those needed for computation and for communication over open descriptors.
// Layers that the kernel does not support are omitted and reported.
package sandbox

import (
	"errors"
)

// ErrPlatform reports a layer that this operating system or processor does not support.
var ErrPlatform = errors.New("not on this platform")

// Layer is a means of confinement. Err is the reason why it was not applied, nil if it was.
type Layer struct {
	Name string
	Err  error
}

// Names of layers.
const (
	privileges   = "no new privileges"
	capabilities = "no capabilities"
	landlock     = "landlock"
	seccomp      = "seccomp"
)

// Stage is the phase of a process.
type Stage int

// Stages.
const (
	Load  Stage = iota // files are opened for reading
	Serve              // no file is opened
)

// Files are the files that a process may open.
type Files struct {
	Read    []string // files, and folders with what is below them
	Execute []string // may also be executed and mapped as code
	Open    []uintptr
}
