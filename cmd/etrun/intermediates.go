package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// intermediates are the flags for intermediate values.
type intermediates struct {
	dump string
	trap bool
}

func (f *intermediates) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.dump, "dump-intermediates", "",
		"write the results of all instructions as NumPy arrays into `PLACE`, a folder or FILE.npz; "+
			"turns rewrites off unless --lower is set")
	flags.BoolVar(&f.trap, "trap-nan", false,
		"stop at the first operator that produces NaN or infinity from finite inputs, and show the inputs; turns rewrites off too")
}

func (f *intermediates) wanted() bool { return f.dump != "" || f.trap }

// watching holds the observers of these flags for one session.
type watching struct {
	observers []etrun.Option
	dump      *layers.Dump // nil for none
	trap      *layers.Trap // nil for none
}

// begin creates the output files, and a context that the trap cancels.
func (f *intermediates) begin(ctx context.Context, o *session.Options, place string) (context.Context, *watching, error) {
	w := &watching{}
	if !f.wanted() {
		return ctx, w, nil
	}
	o.ShowValues()
	if f.dump != "" {
		var err error
		if w.dump, err = layers.NewDump(ctx, place); err != nil {
			return ctx, nil, err
		}
		w.observers = append(w.observers, etrun.WithObserver(w.dump))
	}
	if f.trap {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		w.trap = &layers.Trap{Stop: stop}
		w.observers = append(w.observers, etrun.WithObserver(w.trap))
	}
	return ctx, w, nil
}

// end finishes the observers after the runs ended with err.
func (w *watching) end(err error) error {
	if w.trap != nil && w.trap.Found != nil {
		return w.trap.Found
	}
	if w.dump != nil && err == nil {
		err = w.dump.Commit()
	}
	return err
}

func (w *watching) close() {
	if w.dump != nil {
		w.dump.Close()
	}
	if w.trap != nil {
		w.trap.Stop(nil)
	}
}
