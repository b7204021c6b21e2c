package layers

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// Intermediates are the flags for intermediate values.
type Intermediates struct {
	Dump string
	trap bool
}

// AddFlags adds the flags.
func (f *Intermediates) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Dump, "dump-intermediates", "",
		"write the results of all instructions as NumPy arrays into `PLACE`, a folder or FILE.npz; "+
			"turns rewrites off unless --lower is set")
	flags.BoolVar(&f.trap, "trap-nan", false,
		"stop at the first operator that produces NaN or infinity from finite inputs, and show the inputs; turns rewrites off too")
}

// Wanted reports whether one of the flags is set.
func (f *Intermediates) Wanted() bool { return f.Dump != "" || f.trap }

// Watching holds the observers of these flags for one session.
type Watching struct {
	Observers []etrun.Option
	dump      *Dump // nil for none
	trap      *Trap // nil for none
}

// Begin creates the output files, and a context that the trap cancels.
func (f *Intermediates) Begin(ctx context.Context, o *session.Options, place string) (context.Context, *Watching, error) {
	w := &Watching{}
	if !f.Wanted() {
		return ctx, w, nil
	}
	o.ShowValues()
	if f.Dump != "" {
		var err error
		if w.dump, err = newDump(ctx, place); err != nil {
			return ctx, nil, err
		}
		w.Observers = append(w.Observers, etrun.WithObserver(w.dump))
	}
	if f.trap {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		w.trap = &Trap{Stop: stop}
		w.Observers = append(w.Observers, etrun.WithObserver(w.trap))
	}
	return ctx, w, nil
}

// End finishes the observers after the runs ended with err.
func (w *Watching) End(err error) error {
	if w.trap != nil && w.trap.Found != nil {
		return w.trap.Found
	}
	if w.dump != nil && err == nil {
		err = w.dump.Commit()
	}
	return err
}

// Close removes what End has not committed, and ends the trap.
func (w *Watching) Close() {
	if w.dump != nil {
		w.dump.Close()
	}
	if w.trap != nil {
		w.trap.Stop(nil)
	}
}
