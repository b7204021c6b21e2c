package cli

import (
	"context"
	"errors"
)

// Cancelled reports whether a signal or the time limit ended what returned err.
func Cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// ErrDiffer means that results are not as expected.
var ErrDiffer = errors.New("results differ")

// ErrUnlike means that two programs differ, as in diff(1).
var ErrUnlike = errors.New("the programs differ")
