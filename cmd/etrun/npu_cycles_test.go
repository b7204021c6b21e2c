package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestNPUCycles(t *testing.T) {
	const digits = "PTE/../ethosu/programs/digits.pte"
	play(t, []script{
		{name: "table", args: "npu cycles " + digits + " --clock 500", stdout: []string{"method forward, delegate 0, ethos-u85-256: about ",
			" at 500 MHz; 24448 MACs", "CONV\n", "POOL MAX\n", "share"}},
		{name: "summary", args: "npu disasm " + digits + " --summary", stdout: []string{"5 operations", "3 CONV take ", "share", "POOL MAX"}},
		{name: "no NPU", args: "npu cycles HERE/add.pte", code: 2, stderr: []string{"no delegate for EthosUBackend"}},
		{name: "no NPU to sum up", args: "npu disasm HERE/add.pte --summary", code: 2, stderr: []string{"no delegate for EthosUBackend"}},
		{name: "no file", args: "npu cycles gone.pte", code: 2, stderr: []string{"no such file"}},
		{name: "no program", args: "npu cycles noise.pte", code: 3},
		{name: "a memory that is none", args: "npu cycles " + digits + " --memory flash=3", code: 2, stderr: []string{"one of constants, scratch, fast"}},
		{name: "a rate that is none", args: "npu cycles " + digits + " --memory scratch=0", code: 2, stderr: []string{`rate "0"`}},
		{name: "too many figures", args: "npu cycles " + digits + " --memory scratch=1,2,3,4", code: 2, stderr: []string{"RATE,LATENCY,BURST"}},
		{name: "a latency that is none", args: "npu cycles " + digits + " --memory scratch=1,x", code: 2, stderr: []string{`"x", want a number`}},
		{name: "a clock that is none", args: "npu cycles " + digits + " --clock -1", code: 2, stderr: []string{"--clock -1"}},
	})
}

// Slow memory makes operations slower, and never faster.
func TestNPUCyclesOfSlowMemory(t *testing.T) {
	estimate := func(args ...string) npuCycles {
		var out, notes bytes.Buffer
		args = append([]string{"npu", "cycles", "../../testdata/ethosu/programs/digits.pte", "--json"}, args...)
		if code := run(args, strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("exit code %d: %s", code, notes.String())
		}
		var r struct{ Delegates []npuCycles }
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Delegates) != 1 {
			t.Fatalf("got %+v, %v", r, err)
		}
		return r.Delegates[0]
	}
	fast, slow := estimate(), estimate("--memory", "constants=0.01", "--memory", "scratch=0.01")
	if slow.Cycles < 10*fast.Cycles || slow.MACs != fast.MACs || slow.Use >= fast.Use {
		t.Errorf("%g cycles, and %g on slow memory", fast.Cycles, slow.Cycles)
	}
	end, shares := 0.0, 0.0
	for i, o := range fast.Operations {
		end = max(end, o.End)
		if took := o.End - o.Begin; math.Abs(took-max(float64(o.NPU), o.Memory)) > 1e-6 {
			t.Errorf("operation %d takes %g, units %d, memory %g", i, took, o.NPU, o.Memory)
		}
	}
	for _, k := range fast.Kinds {
		shares += k.Share
	}
	if end != fast.Cycles || math.Abs(shares-1) > 1e-9 {
		t.Errorf("the end is %g of %g, shares add up to %g", end, fast.Cycles, shares)
	}
}
