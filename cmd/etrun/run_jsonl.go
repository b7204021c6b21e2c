package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/advice"
)

// lineReport is the JSON object for one line of --jsonl.
type lineReport struct {
	Schema   string            `json:"schema"`
	Line     int               `json:"line"`               // of standard input, from 1
	RunMS    float64           `json:"run_ms"`             // without reading the inputs
	Outputs  []json.RawMessage `json:"outputs,omitempty"`  // nested lists and numbers; NaN and infinities as text
	Decoded  []any             `json:"decoded,omitempty"`  // what each --decode read
	Warnings []string          `json:"warnings,omitempty"` // what of pictures was cut off
	Error    *failure          `json:"error,omitempty"`    // of this line
}

// errLines means that lines of --jsonl failed.
type errLines struct {
	lines, failed int
	first         error
}

func (e *errLines) Error() string {
	return fmt.Sprintf("%d of %s failed; the first: %v", e.failed, cli.Count(e.lines, "line", "lines"), e.first)
}

// Unwrap returns the error of the first line that failed.
func (e *errLines) Unwrap() error { return e.first }

// checkLines rejects flags that need all inputs before the run.
func (r *runCommand) checkLines() error {
	if len(r.calls) > 1 || len(r.calls[0].Inputs) > 0 {
		return session.Usage("--jsonl reads the inputs from standard input; remove --input and --next")
	}
	if len(r.feed) > 0 {
		return session.Usage("--feed is for the frames of a recording and the calls after --next")
	}
	if r.repeat > 1 || r.JSON || len(r.targets) > 0 || r.drawing != "" || r.dir != "" || r.npz != "" || r.profileFlags.wanted() || r.Intermediates.Wanted() {
		return session.Usage("--jsonl writes a line with the outputs for each line of inputs; remove --repeat, --json, --output and the flags " +
			"of profiles")
	}
	return nil
}

// runLines runs the program once for each line of standard input. State goes on from line to line, like from call to call, unless
// it is reset.
func (r *runCommand) runLines(ctx context.Context, path string) error {
	if err := r.checkLines(); err != nil {
		return err
	}
	if err := r.readLabels(ctx); err != nil {
		return err
	}
	s, err := session.Open(ctx, path, &r.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.PrepareToFeed(ctx, r.calls[0].Method); err != nil {
		return err
	}
	in, done := bufio.NewReader(r.In), errLines{}
	for {
		text, err := readLine(in, r.InputLimit())
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("standard input, line %d: %w", done.lines+1, err)
		}
		done.lines++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := r.line(ctx, s, text, &done); err != nil {
			return err
		}
	}
	if done.failed > 0 {
		return &done
	}
	return nil
}

// readLine reads a line of at most limit bytes.
func readLine(in *bufio.Reader, limit int64) (text []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if int64(len(text)+len(part)) > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", input.ErrMemory, limit)
		}
		text = append(text, part...)
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(text) > 0:
			return text, nil
		default:
			return text, err
		}
	}
}

// line runs the program on the inputs of a line, and writes a line. Its error ends the command.
func (r *runCommand) line(ctx context.Context, s *session.Session, text []byte, done *errLines) error {
	report := &lineReport{Schema: "etrun.run.line/1", Line: done.lines}
	s.Steps[0].Took = s.Steps[0].Took[:0]
	fault := r.runLine(ctx, s, text, report)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fault != nil {
		end := exitOf(fault)
		report.Outputs, report.Decoded, report.Error = nil, nil, &failure{"etrun.error/1", end.name, end.code, advice.Command(fault.Error())}
		if done.failed++; done.first == nil {
			done.first = fault
		}
	}
	line, err := json.Marshal(report)
	if err != nil {
		return err
	}
	if _, err = r.Out.Write(append(line, '\n')); err != nil {
		return err
	}
	if ran := len(s.Steps[0].Took) > 0; fault != nil && ran && !r.reset && s.KeepsState() {
		return fmt.Errorf("standard input, line %d: %w; the lines after it depend on its state, and are not run (--reset runs each "+
			"from the initial state)", done.lines, fault)
	}
	return nil
}

func (r *runCommand) runLine(ctx context.Context, s *session.Session, text []byte, report *lineReport) error {
	specs, err := lineSpecs(text)
	if err != nil {
		return err
	}
	warn := func(format string, args ...any) {
		if format == input.WarnCut {
			report.Warnings = append(report.Warnings, strings.TrimPrefix(fmt.Sprintf(format, args...), "warning: "))
		}
	}
	if err := s.Feed(ctx, specs, warn); err != nil {
		return err
	}
	run := s.Again
	if r.reset {
		run = s.Once
	}
	return run(ctx, func(_ int, st *session.Step) error {
		report.RunMS = stats.MS(st.Took[0])
		outputs, err := st.Outputs()
		for i := 0; i < len(outputs) && err == nil; i++ {
			var text []byte
			text, err = output.JSON(outputs[i])
			report.Outputs = append(report.Outputs, text)
		}
		for i := 0; i < len(r.decoders) && err == nil; i++ {
			var found any
			found, err = r.decoders[i].Decode(outputs, r.scene(st))
			report.Decoded = append(report.Decoded, found)
		}
		return err
	})
}

// lineSpecs returns the inputs of a line: texts, as after --input, or what --input json: accepts.
func lineSpecs(text []byte) ([]input.Spec, error) {
	if !json.Valid(text) {
		return nil, fmt.Errorf("%w: no JSON value", input.ErrSpec)
	}
	var one string
	var list []string
	switch {
	case json.Unmarshal(text, &one) == nil:
		list = []string{one}
	case json.Unmarshal(text, &list) != nil || len(list) == 0:
		list = []string{"json:" + string(text)}
	}
	var specs []input.Spec
	for _, text := range list {
		s, err := input.Parse(text)
		if err == nil && s.ReadsStdin() {
			err = errors.New("standard input has the lines")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", input.ErrSpec, err)
		}
		specs = append(specs, s)
	}
	return specs, nil
}
