package main

import (
	"context"
	"errors"
)

// cancelled reports whether a signal or the time limit ended what returned err.
func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// errDiffer means that results are not as expected.
var errDiffer = errors.New("results differ")

// errUnlike means that two programs differ, as in diff(1).
var errUnlike = errors.New("the programs differ")
