package main

import (
	"context"
	"fmt"
	"io"

	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/weight"
)

// savedWeight is a constant that inspect writes to a file instead of its report.
type savedWeight struct {
	name, path string
	real       bool
}

// weightReport is the JSON object of inspect --weight.
type weightReport struct {
	Schema string `json:"schema"`
	Model  string `json:"model"`
	Weight string `json:"weight"`
	Type   string `json:"type"` // in the program
	Shape  []int  `json:"shape"`
	Path   string `json:"path"`
}

// saveWeight writes a constant of the program.
func (i *inspection) saveWeight(ctx context.Context, path string) error {
	w := &i.weight
	if w.path == "" {
		return session.Usage("--weight %s, want a file for it: -o weight.npy", w.name)
	}
	if err := i.LeaveStdout(w.path); err != nil {
		return err
	}
	i.options.Constants, i.options.Unfused = true, true
	i.options.AsInFile()
	s, err := session.Open(ctx, path, i.options)
	if err != nil {
		return err
	}
	defer s.Close()
	var names []string
	var report *weightReport
	var failed error
	err = graph.Weights(ctx, s.Program, func(x *weight.Weight) {
		if names = append(names, x.Name); x.Name != w.name || report != nil {
			return
		}
		report = &weightReport{"etrun.inspect.weight/1", path, x.Name, x.Type(), x.Sizes, w.path}
		failed = output.WriteFile(ctx, w.path, func(to io.Writer) error { return npy.Write(to, x.Tensor(w.real)) })
	})
	switch {
	case err != nil:
		return err
	case report == nil && len(names) == 0:
		return session.Usage("--weight %.100q: the program has no constants", w.name)
	case report == nil:
		return session.Usage("--weight %.100q: none of the program's %d constants has this name, which etrun view shows; the first is %.100q%s",
			w.name, len(names), names[0], nearest.Hint(w.name, names))
	case failed != nil:
		return failed
	case i.JSON:
		return i.WriteJSON(report)
	case w.path == output.Stdout:
		return nil
	}
	_, err = fmt.Fprintf(i.Out, "%s: %s\n", w.path, report.Type)
	return err
}
