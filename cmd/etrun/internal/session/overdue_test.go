package session

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// deaf is a callee that ignores its context, as a loop of a C library does.
type deaf struct {
	Callee
	takes time.Duration
}

func (d deaf) Execute(context.Context) error {
	time.Sleep(d.takes)
	return nil
}

// overdueExit is the exit code of the process in which a run is abandoned.
const overdueExit = 37

// TestEndOverdue runs a callee that ignores its context in a process of its own, which must end about a second after
// the context does; and one that ends in time, which is not abandoned.
func TestEndOverdue(t *testing.T) {
	const variable = "ETRUN_TEST_OVERDUE"
	if takes, err := time.ParseDuration(os.Getenv(variable)); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		stop := EndOverdue(ctx, func(cause error) {
			if errors.Is(cause, context.DeadlineExceeded) {
				os.Exit(overdueExit)
			}
			os.Exit(1)
		})
		err := (&Step{Callee: deaf{takes: takes}}).Execute(ctx)
		stop()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		return
	}
	for takes, want := range map[string]int{"10m": overdueExit, "200ms": 0} {
		c := exec.Command(os.Args[0], "-test.run=^TestEndOverdue$")
		c.Env = append(os.Environ(), variable+"="+takes)
		begun := time.Now()
		_ = c.Run()
		took := time.Since(begun)
		if got := c.ProcessState.ExitCode(); got != want || took > 30*time.Second || want != 0 && took < overdue {
			t.Errorf("a run of %s: exit code %d after %v, want %d", takes, got, took, want)
		}
	}
}
