package modules

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/runtime/pte"
)

const edge = `{"graph_module": {"graph": {"nodes": [
	{"metadata": {"debug_handle": "1", "nn_module_stack": "L__self__,,net.Net;L__self__a,a,torch.nn.modules.conv.Conv2d"}},
	{"metadata": {"debug_handle": 2, "nn_module_stack": "L__self__,,net.Net"}},
	{"metadata": {"nn_module_stack": "x"}},
	{"inputs": [{"arg": {"as_graph": {"graph": {"nodes": [{"metadata": {"debug_handle": "3",
		"nn_module_stack": "k,layers.0.attn,net.Attention"}}]}}}}], "metadata": {"debug_handle": "x"}}]}}}`

// archive writes a zip archive of parts.
func archive(t *testing.T, parts map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range parts {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "etrecord.bin")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func program(stacks [][]pte.Frame) *pte.Program {
	return &pte.Program{Methods: []pte.Method{{Name: "forward", Chains: []pte.Chain{{Instructions: make([]pte.Instruction, 4), Stacks: stacks}}}}}
}

func TestNames(t *testing.T) {
	path := archive(t, map[string]string{versionPart: "", handlesPart: `{"forward": {"0": 1, "1": 2, "2": [1, 3, 3]}}`, edgePart + "/forward": edge})
	r, err := Open(t.Context(), path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(program([][]pte.Frame{nil, nil, nil, {{File: "net.py", Line: 7, Name: "forward"},
		{File: "/usr/lib/python3/dist-packages/torch/nn/modules/conv.py", Line: 565, Name: "forward"}}}), r)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a (Conv2d)", "Net", "a (Conv2d) … layers.0.attn (Attention)", "net.py:7 forward", ""} {
		if got := n.Instruction("forward", 0, i); got != want {
			t.Errorf("instruction %d: got %q, want %q", i, got, want)
		}
	}
	if got := n.Node("forward", 2); got != "Net" {
		t.Errorf("node: %q", got)
	}
	for _, got := range []string{n.Node("forward", 0), n.Node("other", 1), n.Instruction("forward", 1, 0), n.Instruction("forward", -1, -1),
		(*Names)(nil).Instruction("forward", 0, 0)} {
		if got != "" {
			t.Errorf("a name of nothing: %q", got)
		}
	}
}

func TestRecordsThatCannotBeUsed(t *testing.T) {
	good := map[string]string{versionPart: "", handlesPart: `{"forward": {"0": 1}}`, edgePart + "/forward": edge}
	with := func(name, text string) map[string]string {
		m := map[string]string{}
		for k, v := range good {
			m[k] = v
		}
		if m[name] = text; text == "-" {
			delete(m, name)
		}
		return m
	}
	for _, c := range []struct {
		name  string
		parts map[string]string
		want  string
	}{
		{"no version", with(versionPart, "-"), "ETRECORD_V0"},
		{"no handles", with(handlesPart, "-"), "debug_handle_map"},
		{"handles that are no map", with(handlesPart, `[1]`), `part "debug_handle_map"`},
		{"handles that are text", with(handlesPart, `{"forward": {"0": "x"}}`), `part "debug_handle_map"`},
		{"no edge program", with(edgePart+"/forward", "-"), "edge_dialect_exported_program/forward"},
		{"an edge program that is no JSON", with(edgePart+"/forward", "PK"), "edge_dialect_exported_program/forward"},
		{"a large part", with(edgePart+"/forward", strings.Repeat(" ", 5000)), "at most 4096"},
		{"another method", map[string]string{versionPart: "", handlesPart: `{"other": {}}`, edgePart + "/other": edge}, "of another program"},
		{"more instructions", with(handlesPart, `{"forward": {"4": 1}}`), "has 4 instructions, the record has instruction 4"},
		{"a negative instruction", with(handlesPart, `{"forward": {"-1": 1}}`), "instruction -1"},
	} {
		r, err := Open(t.Context(), archive(t, c.parts), 4096)
		if err == nil {
			_, err = New(program(nil), r)
		}
		if _, typed := errors.AsType[*RecordError](err); !typed || !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, 4096); !errors.Is(err, ErrRecord) {
		t.Errorf("no archive: %v", err)
	}
}

// Every modified byte, and every shorter file, is an error or a record, never a panic.
func TestHostileRecords(t *testing.T) {
	path := archive(t, map[string]string{versionPart: "", handlesPart: `{"forward": {"0": 1}}`, edgePart + "/forward": edge})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, file := range [][]byte{append(append(bytes.Clone(good[:i]), good[i]^0x55), good[i+1:]...), good[:i]} {
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			if r, err := Open(t.Context(), path, 4096); err == nil {
				_, _ = New(program(nil), r)
			} else if !errors.Is(err, ErrRecord) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}
