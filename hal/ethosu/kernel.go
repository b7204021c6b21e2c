package ethosu

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// kernel is the operating system interface of the Linux drivers; tests replace it. Errors are of
// type syscall.Errno.
type kernel interface {
	// nodes returns the device nodes that match a pattern.
	nodes(pattern string) []string
	open(path string) (fd int, err error)
	close(fd int) error
	// ioctl makes one attempt. arg points to the request's structure, nil for none.
	ioctl(fd int, request uint32, arg unsafe.Pointer) (int, error)
	// mmap maps device memory, shared, for reading and writing.
	mmap(fd int, offset int64, size int) ([]byte, error)
	// remap replaces mem with other device memory at the same address.
	remap(mem []byte, fd int, offset int64) error
	munmap(mem []byte) error
	// poll waits until fd is readable.
	poll(fd int, timeout time.Duration) (ready bool, err error)
	// monotonic returns the clock used for deadlines in ioctls, in nanoseconds.
	monotonic() int64
}

// defaultTimeout is the default limit of a run.
const defaultTimeout = time.Minute

// busyTimeout is how long a request is retried while the kernel is busy.
const busyTimeout = 5 * time.Second

// slice is the longest wait between checks of the context.
const slice = 10 * time.Millisecond

// Request numbers of ioctls: direction, size of the argument, type, number.
const (
	ioctlWrite = 1 << 30
	ioctlRead  = 2 << 30
)

func ioctlNumber(direction uint32, kind byte, number, size uintptr) uint32 {
	return direction | uint32(size)<<16 | uint32(kind)<<8 | uint32(number)
}

// request performs an ioctl, retrying if a signal interrupted it or the kernel was busy.
func request(k kernel, fd int, number uint32, arg unsafe.Pointer) (int, error) {
	var until time.Time
	for {
		n, err := k.ioctl(fd, number, arg)
		if err != syscall.EINTR && err != syscall.EAGAIN {
			return n, err
		}
		switch now := time.Now(); {
		case until.IsZero():
			until = now.Add(busyTimeout)
		case now.After(until):
			return n, err
		}
		if err == syscall.EAGAIN {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// etime is ETIME of Linux, which other systems have no name for.
const etime = syscall.Errno(62)

// errnoReasons maps kernel errors to reasons.
var errnoReasons = map[syscall.Errno]error{
	syscall.ENODEV:    ErrMissing,
	syscall.ENXIO:     ErrMissing,
	syscall.EINVAL:    ErrUnsupported,
	syscall.ENOTTY:    ErrUnsupported,
	syscall.ENOENT:    ErrUnsupported,
	syscall.EOVERFLOW: ErrUnsupported,
	syscall.ENOSYS:    ErrUnsupported,
	etime:             ErrTimeout,
	syscall.ETIMEDOUT: ErrTimeout,
}

// systemError wraps a kernel error; what names the request.
func systemError(device, op, what string, err error) error {
	e := &DeviceError{Device: device, Op: op, Reason: ErrFault, Err: &callError{what, err}}
	var number syscall.Errno
	if errors.As(err, &number) {
		e.Status = uint32(number)
		if r, ok := errnoReasons[number]; ok {
			e.Reason = r
		}
	}
	return e
}

// callError is the error of a named request.
type callError struct {
	what string
	err  error
}

func (e *callError) Error() string { return e.what + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// interrupted returns the error for a caller whose context ended.
func interrupted(ctx context.Context, device, op string) error {
	return &DeviceError{Device: device, Op: op, Reason: ErrInterrupted, Err: context.Cause(ctx)}
}

// over returns an error if the caller's context ended or a job's deadline passed.
func over(ctx context.Context, deadline time.Time, timeout time.Duration, device, op string) error {
	if ctx.Err() != nil {
		return interrupted(ctx, device, op)
	}
	if time.Now().After(deadline) {
		return &DeviceError{Device: device, Op: op, Reason: ErrTimeout, Err: fmt.Errorf("not done after %v", timeout)}
	}
	return nil
}
