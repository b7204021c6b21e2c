package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// program checks an open program: what its methods lack, and whether the complete ones
// load.
func (f *fileCheck) program(ctx context.Context, s *session.Session) error {
	spec := s.Spec()
	f.Version, f.Methods = spec.Version, len(spec.Methods)
	operators := make(map[string]bool)
	for i := range spec.Methods {
		m := &spec.Methods[i]
		f.Delegates += len(m.Delegates)
		for _, o := range m.Operators {
			operators[o.FullName()] = true
		}
		before := len(f.Findings)
		if err := f.missing(s.Program, m); err != nil {
			return err
		}
		if len(f.Findings) > before {
			continue
		}
		if err := f.load(ctx, s, m); err != nil {
			return err
		}
	}
	f.Operators = len(operators)
	f.language(s)
	for _, w := range s.Warnings() {
		switch w.Class {
		case delegate.WarnData:
			f.note("surplus", "", w.Text)
		case delegate.WarnFault:
			f.note("fault", "", w.Text)
		}
	}
	return nil
}

// language notes what keeps generate from a program whose prompts have pictures or sounds, and transcribe from one of speech.
func (f *fileCheck) language(s *session.Session) {
	_, parts, err := text.MediaOf(s.Program)
	switch {
	case err != nil:
		f.note("language model", "", err.Error())
	case parts && !tokenizer.InFolder(filepath.Dir(f.Model)):
		f.note("language model", "", "no tokenizer in the folder of the program: generate needs --tokenizer FILE")
	}
	family, ok := speech.FamilyOf(s.Program)
	if ok && (family == speech.Whisper || family == speech.Transducer) && !tokenizer.InFolder(filepath.Dir(f.Model)) {
		f.note("speech", "", "no tokenizer in the folder of the program: transcribe needs --tokenizer FILE")
	}
}

// note adds a finding that does not prevent a run.
func (f *fileCheck) note(kind, method, text string) {
	f.Findings = append(f.Findings, finding{Kind: kind, Note: true, Method: method, Text: text})
}

// missing finds everything that a method lacks.
func (f *fileCheck) missing(p *etrun.Program, m *pte.Method) error {
	meta, err := p.Meta(m.Name)
	if err != nil {
		return err
	}
	for i, o := range meta.Operators {
		if !o.Available && o.Calls > 0 {
			f.lacks(finding{Kind: "operator", Method: m.Name, Name: o.Name, Calls: o.Calls, First: firstCall(m, pte.KernelCall, i),
				Nearest: nearest.Name(o.Name, etrun.DefaultOperators().Names())})
		}
	}
	for i, d := range meta.Delegates {
		if !d.Available {
			f.lacks(finding{Kind: "backend", Method: m.Name, Name: d.ID, Calls: d.Calls, First: firstCall(m, pte.DelegateCall, i),
				Nearest: nearest.Name(d.ID, backendIDs())})
		}
	}
	for _, key := range dataKeys(m) {
		if _, ok := p.Named(key); !ok {
			f.lacks(finding{Kind: "data", Method: m.Name, Name: key, Nearest: nearest.Name(key, p.NamedKeys())})
		}
	}
	return nil
}

// lacks adds a missing item, once for all delegates of a backend.
func (f *fileCheck) lacks(what finding) {
	at := slices.IndexFunc(f.Findings, func(other finding) bool {
		return other.Kind == what.Kind && other.Method == what.Method && other.Name == what.Name
	})
	if at >= 0 {
		f.Findings[at].Calls += what.Calls
		return
	}
	switch what.Kind {
	case "operator":
		what.Text = "no kernel in this build"
	case "backend":
		what.Text = "not in this build, which has " + strings.Join(backendIDs(), " and ")
	case "data":
		what.Text = "neither in the program nor in a data file; pass --data FILE.ptd"
	}
	f.fail(what, etrun.ErrMissing)
}

func backendIDs() (ids []string) {
	for _, b := range all.Backends() {
		ids = append(ids, b.ID())
	}
	return ids
}

// firstCall returns the location of the first instruction of a kind with an index.
func firstCall(m *pte.Method, kind pte.InstructionKind, index int) string {
	for c := range m.Chains {
		for i, in := range m.Chains[c].Instructions {
			if in.Kind == kind && in.Index == index {
				if c > 0 {
					return fmt.Sprintf("chain %d, instruction %d", c, i)
				}
				return fmt.Sprintf("instruction %d", i)
			}
		}
	}
	return ""
}

// dataKeys returns the names of a method's external tensors and of the data that its
// delegates use. A malformed payload has none: the load reports it.
func dataKeys(m *pte.Method) (keys []string) {
	for v := range m.Values {
		if t := m.Values[v].Tensor; m.Values[v].Kind == tensor.KindTensor && (t.Storage == pte.External || t.Storage == pte.ExternalPlanned) {
			keys = append(keys, t.Name)
		}
	}
	for _, b := range all.Backends() {
		namer, ok := b.(delegate.Namer)
		for i := range m.Delegates {
			if ok && m.Delegates[i].ID == b.ID() {
				found, _ := namer.Names(m.Delegates[i].Data)
				keys = append(keys, found...)
			}
		}
	}
	return keys
}

// load loads a complete method, and notes what the load corrected.
func (f *fileCheck) load(ctx context.Context, s *session.Session, m *pte.Method) error {
	method, err := s.LoadOwn(ctx, m.Name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		f.fail(finding{Kind: "load", Method: m.Name, Text: err.Error()}, err)
		return nil
	}
	if n := len(method.Report().Plan.Conflicts); n > 0 {
		f.note("plan", m.Name, fmt.Sprintf("the file's memory plan overlaps %s of live values; it is not used", cli.Count(n, "pair", "pairs")))
	}
	for i, info := range method.Delegates() {
		for _, fact := range info.Facts {
			if strings.HasPrefix(fact[0], "output") && strings.Contains(fact[1], "with scale") {
				f.note("stale type", m.Name, fmt.Sprintf("delegate %d, %s: %s", i, fact[0], fact[1]))
			}
		}
	}
	for _, repair := range method.Report().Repairs {
		f.note("repair", m.Name, repair)
	}
	return nil
}

var verdictWords = map[string]string{"ok": "runs here", "missing": "lacks what it needs", "model": "invalid",
	"usage": "cannot be read", "memory": "above the memory limit"}

// print writes the verdict, and the findings below it.
func (f *fileCheck) print(w io.Writer) {
	words, ok := verdictWords[f.Verdict]
	if !ok {
		words = "does not run here"
	}
	fmt.Fprintf(w, "%s: %s", f.Model, words)
	if f.Methods > 0 {
		fmt.Fprintf(w, " (program version %d, %s, %s, %s)", f.Version, cli.Count(f.Methods, "method", "methods"),
			cli.Count(f.Operators, "operator", "operators"), cli.Count(f.Delegates, "delegate", "delegates"))
	}
	fmt.Fprintln(w)
	for i := range f.Findings {
		f.Findings[i].print(w)
	}
}

func (f *finding) print(w io.Writer) {
	parts := []string{}
	if f.Note {
		parts = append(parts, "note")
	}
	if f.Method != "" {
		parts = append(parts, "method "+cli.Printable(f.Method))
	}
	if f.Name != "" {
		parts = append(parts, f.Kind+" "+cli.Printable(f.Name))
	}
	line := f.Text
	if f.Calls > 0 {
		line += fmt.Sprintf("; %s, first at %s", cli.Count(f.Calls, "call", "calls"), f.First)
	}
	if f.Nearest != "" {
		line += "; nearest: " + cli.Printable(f.Nearest)
	}
	fmt.Fprintf(w, "  %s\n", strings.Join(append(parts, line), ": "))
}
