package compiletest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// Programs of exporters have all that their tools need; without a vector they lack it.
func TestReadByTools(t *testing.T) {
	paths, err := filepath.Glob("../../../testdata/digits/*.pte")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%d programs: %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if missing := ReadByTools(data); len(missing) > 0 {
			t.Errorf("%s: %q", path, missing)
		}
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"backend_delegate_data":                                       "Program has no backend_delegate_data",
		"execution_plan[0].delegates":                                 "ExecutionPlan has no delegates",
		"execution_plan[0].container_meta_type.encoded_out_str":       "ContainerMetadata has no encoded_out_str",
		"execution_plan[0].chains[0].inputs":                          "Chain has no inputs",
		"execution_plan[0].chains[0].instructions[0].instr_args.args": "Call has no args",
		"execution_plan[0].operators[0].overload":                     "Operator has no overload",
	} {
		f, err := tree.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		ptetest.Set(f.Root, place, nil)
		if missing := ReadByTools(f.Bytes()); len(missing) != 1 || !strings.Contains(missing[0], want) {
			t.Errorf("without %s: %q, want %q", place, missing, want)
		}
		f.Complete()
		if missing := ReadByTools(f.Bytes()); len(missing) > 0 {
			t.Errorf("without %s, completed: %q", place, missing)
		}
	}
}
