package session

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// timeLimit is the value of --timeout: the limit of a command, with the load of its programs.
type timeLimit time.Duration

// Set implements pflag.Value.
func (l *timeLimit) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%v, want 0 or more", d)
	}
	*l = timeLimit(d)
	return err
}

// String implements pflag.Value.
func (l *timeLimit) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}

// Type implements pflag.Value.
func (l *timeLimit) Type() string { return "duration" }

// limitFlag is the name of the flag of the time limit. The server has one of that name for requests.
const limitFlag = "timeout"

// AddTimeLimit adds --timeout to the flags of a command that opens programs, unless it has its own.
func AddTimeLimit(flags *pflag.FlagSet) {
	if flags.Lookup("max-memory") != nil && flags.Lookup(limitFlag) == nil {
		TimeLimit(flags)
	}
}

// TimeLimit adds --timeout.
func TimeLimit(flags *pflag.FlagSet) {
	flags.Var(new(timeLimit), limitFlag, "end the command after `TIME`, such as 30s (default: no limit)")
}

// Limit returns ctx with the time limit of a command line, if it has one. The caller calls the function
// when the command has ended.
func Limit(ctx context.Context, flags *pflag.FlagSet) (context.Context, context.CancelFunc) {
	f := flags.Lookup(limitFlag)
	if f == nil {
		return ctx, func() {}
	}
	l, ok := f.Value.(*timeLimit)
	if !ok || *l == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Duration(*l), timeUp(*l))
}

// timeUp is the cause of a context whose time limit is reached.
type timeUp time.Duration

func (e timeUp) Error() string { return "timeout of " + time.Duration(e).String() }

// Unwrap returns context.DeadlineExceeded.
func (e timeUp) Unwrap() error { return context.DeadlineExceeded }
