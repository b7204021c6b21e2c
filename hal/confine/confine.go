// Package confine (no compatibility promise) takes rights away from a process that reads
// untrusted files. They cannot be restored.
//
// A thread is confined first: the process that it starts is born without capabilities, and
// with Landlock's rules for files, sockets and signals. That process then limits its own
// system calls: [Filter] leaves those that computing and talking over open descriptors need.
// A kernel without a layer leaves it out, which is reported.
package confine

import "errors"

// ErrPlatform is a layer that this operating system or processor has not.
var ErrPlatform = errors.New("not on this platform")

// Layer is a means of confinement. Err is why it could not be applied, nil where it was.
type Layer struct {
	Name string
	Err  error
}

// Names of layers.
const (
	Privileges   = "no new privileges"
	Capabilities = "no capabilities"
	Landlock     = "landlock"
	Seccomp      = "seccomp"
)

// Stage is what a process still has to do.
type Stage int

// Stages.
const (
	Load  Stage = iota // files are opened for reading
	Serve              // no file is opened
)

// Files are what a process may open.
type Files struct {
	Read    []string // files, and folders with what is below them
	Execute []string // which may be executed and mapped as code, too
	Open    []uintptr
}
