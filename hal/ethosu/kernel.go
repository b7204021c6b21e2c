package ethosu

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// kernel is what the Linux carriers need of the operating system; tests put one of
// their own in its place. Errors are of type syscall.Errno.
type kernel interface {
	// nodes lists the device nodes of a pattern.
	nodes(pattern string) []string
	open(path string) (fd int, err error)
	close(fd int) error
	// ioctl is one attempt. arg points to the request's structure, nil for none.
	ioctl(fd int, request uint32, arg unsafe.Pointer) (int, error)
	// mmap maps device memory, shared, for reading and writing.
	mmap(fd int, offset int64, size int) ([]byte, error)
	// remap puts other device memory in the place of mem.
	remap(mem []byte, fd int, offset int64) error
	munmap(mem []byte) error
	// poll waits until fd can be read.
	poll(fd int, timeout time.Duration) (ready bool, err error)
	// monotonic is the clock of deadlines in ioctls, in nanoseconds.
	monotonic() int64
}

// defaultTimeout is how long a device may take where JobOptions say nothing.
const defaultTimeout = time.Minute

// patience is how long a request is repeated that the kernel did not get to.
const patience = 5 * time.Second

// slice is the longest that a wait does not look at its context.
const slice = 10 * time.Millisecond

// Numbers of ioctl requests: direction, size of the argument, type, number.
const (
	ioctlWrite = 1 << 30
	ioctlRead  = 2 << 30
)

func ioctlNumber(direction uint32, kind byte, number, size uintptr) uint32 {
	return direction | uint32(size)<<16 | uint32(kind)<<8 | uint32(number)
}

// request makes an ioctl, again where a signal interrupted it or the kernel was busy.
func request(k kernel, fd int, number uint32, arg unsafe.Pointer) (int, error) {
	var until time.Time
	for {
		n, err := k.ioctl(fd, number, arg)
		if err != syscall.EINTR && err != syscall.EAGAIN {
			return n, err
		}
		switch now := time.Now(); {
		case until.IsZero():
			until = now.Add(patience)
		case now.After(until):
			return n, err
		}
		if err == syscall.EAGAIN {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// errnoReasons says what errors of the kernel mean.
var errnoReasons = map[syscall.Errno]error{
	syscall.ENODEV:    ErrMissing,
	syscall.ENXIO:     ErrMissing,
	syscall.EINVAL:    ErrUnsupported,
	syscall.ENOTTY:    ErrUnsupported,
	syscall.ENOENT:    ErrUnsupported,
	syscall.EOVERFLOW: ErrUnsupported,
	syscall.ENOSYS:    ErrUnsupported,
	syscall.ETIME:     ErrTimeout,
	syscall.ETIMEDOUT: ErrTimeout,
}

// systemError places an error of the kernel; what says which request it was.
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

// callError names the request that failed.
type callError struct {
	what string
	err  error
}

func (e *callError) Error() string { return e.what + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// interrupted is the error of a caller whose context ended.
func interrupted(ctx context.Context, device, op string) error {
	return &DeviceError{Device: device, Op: op, Reason: ErrInterrupted, Err: context.Cause(ctx)}
}

// over reports the end of the caller's context, or of a job's time.
func over(ctx context.Context, deadline time.Time, timeout time.Duration, device, op string) error {
	if ctx.Err() != nil {
		return interrupted(ctx, device, op)
	}
	if time.Now().After(deadline) {
		return &DeviceError{Device: device, Op: op, Reason: ErrTimeout, Err: fmt.Errorf("not done after %v", timeout)}
	}
	return nil
}
