//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// record writes an ETRecord of a program with some instructions. Instruction i, and nodes with the debug handle i+1, are of the module m.i.
func record(t *testing.T, instructions int) string {
	t.Helper()
	var handles, nodes []string
	for i := range instructions {
		handles = append(handles, fmt.Sprintf(`"%d": %d`, i, i+1))
	}
	for i := range 16 {
		nodes = append(nodes, fmt.Sprintf(`{"metadata": {"debug_handle": "%d", "nn_module_stack": "k,m.%d,nn.Conv2d"}}`, i+1, i))
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{"ETRECORD_V0": "", "debug_handle_map": `{"forward": {` + strings.Join(handles, ",") + `}}`,
		"edge_dialect_exported_program/forward": `{"graph_module": {"graph": {"nodes": [` + strings.Join(nodes, ",") + `]}}}`} {
		w, err := z.Create(name)
		must(t, err)
		_, err = w.Write([]byte(text))
		must(t, err)
	}
	must(t, z.Close())
	path := filepath.Join(t.TempDir(), "etrecord.bin")
	write(t, path, b.Bytes())
	return path
}

func TestLayerNames(t *testing.T) {
	path := record(t, 8)
	play(t, []script{
		{name: "a source", args: "profile PTE/stack_traces.pte --by instruction --lower off --repeat 1",
			stdout: []string{"aten::convolution.out  float32 1x6x8x8  export_features.py:10 forward"}},
		{name: "a record", args: "profile PTE/stack_traces.pte --by instruction --lower off --repeat 1 --etrecord " + path,
			stdout: []string{"aten::convolution.out  float32 1x6x8x8  m.0 (Conv2d)", "m.7 (Conv2d)"}},
		{name: "a record of another program", args: "profile PTE/stack_traces.pte --etrecord " + record(t, 9), code: 3,
			stderr: []string{"of another program"}},
		{name: "no record", args: "profile PTE/stack_traces.pte --etrecord gone.bin", code: 2},
		{name: "a record without layers", args: "compare PTE/stack_traces.pte PTE/stack_traces.pte --etrecord " + path, code: 2,
			stderr: []string{"--etrecord requires --layer"}},
		{name: "a region", args: "profile PTE/stack_traces.pte --by instruction --lower all --xnnpack go --repeat 1 --etrecord " + path,
			stdout: []string{"XnnpackBackend  float32 1x5\n"}},
	})
}

// The nodes of a delegate have the names of their debug handles' modules on both engines; transposes that the exporter added have none.
func TestLayerNamesOfNodes(t *testing.T) {
	path := record(t, 1)
	var list []script
	for _, engine := range []string{"native", "go"} {
		if engine == "native" && !libraryLoaded() {
			continue
		}
		list = append(list, script{name: engine,
			args: "profile PTE/../digits/xnnpack.pte --by instruction --repeat 1 --xnnpack " + engine + " --etrecord " + path,
			stdout: []string{"XnnpackBackend  float32 1x10  m.0 (Conv2d)", "1x8x8x16  m.0 (Conv2d)\n", "1x8x8x16  m.3 (Conv2d)\n",
				"1x8x8x32  m.4 (Conv2d)\n", "1x4x4x32  m.7 (Conv2d)\n", "1x4x4x32  m.8 (Conv2d)\n", "1x1x1x32  m.10 (Conv2d)\n",
				"1x10  m.12 (Conv2d)\n"}})
	}
	list = append(list, script{name: "compare", code: 6,
		args:   "compare PTE/../digits/portable.pte PTE/../digits/xnnpack.pte --layer --atol 0 --rtol 0 --xnnpack go --etrecord " + path,
		stdout: []string{"first one that does not: forward, chain 0, instruction 0", "node 0 (DepthwiseConv2d)", "m.0 (Conv2d)"}})
	play(t, list)
}

// The first different layer has the name of its module.
func TestCompareNamesLayers(t *testing.T) {
	from := filepath.Join("..", "..", "testdata", "pte", "stack_traces.pte")
	file := []byte(readText(t, "testdata", "pte", "stack_traces.pte"))
	uses := constantUses(t, from, file, 0)
	u := uses[len(uses)-1]
	copied := bytes.Clone(file)
	for i := u.lo; i < u.hi; i += 4 {
		copied[i+3] ^= 0x40
	}
	changed := filepath.Join(t.TempDir(), "changed.pte")
	write(t, changed, copied)
	var out, notes bytes.Buffer
	code := run([]string{"compare", from, changed, "--layer", "--json", "--etrecord", record(t, 8)}, strings.NewReader(""), &out, &notes)
	r := &comparedReport{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil || code != 6 || r.Layer == nil || r.Layer.First == nil {
		t.Fatalf("exit code %d, %v, %s%s", code, err, out.String(), notes.String())
	}
	if p := &r.Layer.First.Place; p.Layer != fmt.Sprintf("m.%d (Conv2d)", p.Instruction) {
		t.Errorf("layer %q of instruction %d", p.Layer, p.Instruction)
	}
}
