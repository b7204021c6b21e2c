//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
)

func TestMain(m *testing.M) {
	ethosutest.RunFVP(runOnFake)
	runLimited()
	runAsCommand()
	debug.SetGCPercent(400) // the heap of one command is small: collections would take a quarter of the time
	os.Exit(m.Run())
}

// runOnFake is the executor_runner of the fake models.
func runOnFake(program []byte, inputs [][]byte) (out [][]byte, err error) {
	p, err := etrun.Parse(program, etrun.WithDelegates(all.Backends()...))
	if err != nil {
		return nil, err
	}
	m, err := p.Load(context.Background(), "forward")
	if err != nil {
		return nil, err
	}
	for i, in := range m.Meta().Inputs {
		x := in.NewTensor()
		if n := copy(x.Data, inputs[i]); n != len(inputs[i]) || n != len(x.Data) {
			return nil, fmt.Errorf("input %d: %d bytes, want %d", i, len(inputs[i]), len(x.Data))
		}
		if err := m.SetInput(i, x); err != nil {
			return nil, err
		}
	}
	if err := m.Execute(context.Background()); err != nil {
		return nil, err
	}
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			return nil, err
		}
		out = append(out, v.Tensor.Data)
	}
	return out, nil
}

// TestFVP runs programs on fake models: single delegates with etrun's firmware, and whole
// programs with an executor_runner.
func TestFVP(t *testing.T) {
	programs, err := filepath.Abs("../../testdata/ethosu/programs")
	if err != nil {
		t.Fatal(err)
	}
	elf, err := filepath.Abs("../../hal/ethosu/fvp/firmware/corstone-320.elf")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(programs, "digits_out0.bin"))
	if err != nil {
		t.Fatal(err)
	}
	models := ethosutest.InstallFVPs(t)
	run := programs + "/digits.pte --input " + programs + "/digits_in0.bin --output-dir out"
	for _, s := range []struct {
		name, args string
		fault      string
		code       int
		stderr     []string
	}{
		{name: "delegates", args: "--device fvp --fvp " + models},
		{name: "a program as the model", args: "--fvp " + filepath.Join(models, "FVP_Corstone_SSE-320")},
		{name: "whole program", args: "--fvp " + models + " --fvp-elf " + elf},
		{name: "three times, kept warm", args: "--repeat 3 --fvp " + models + " --fvp-elf " + elf},
		{name: "no model", args: "--device fvp", code: 4, stderr: []string{"FVP_Corstone_SSE-320 is not in PATH"}},
		{name: "no model for the program", args: "--fvp-elf " + elf, code: 4, stderr: []string{"is not in PATH"}},
		{name: "no image", args: "--fvp " + models + " --fvp-elf nowhere.elf", code: 4, stderr: []string{"nowhere.elf"}},
		{name: "another device", args: "--device npu --fvp " + models, code: 2, stderr: []string{"--fvp with --device npu"}},
		{name: "profile", args: "--profile --fvp " + models + " --fvp-elf " + elf, code: 2, stderr: []string{"cannot be observed"}},
		{name: "faulty NPU", args: "--fvp " + models, fault: "npu", code: 7, stderr: []string{"register STATUS 0x14"}},
		{name: "hard fault", args: "--fvp " + models + " --fvp-elf " + elf, fault: "hard fault", code: 7, stderr: []string{"Hard fault"}},
		{name: "hangs", args: "--timeout 300ms --fvp " + models + " --fvp-elf " + elf, fault: "hang", code: 8},
		{name: "wrong input", args: "--input int:1 --fvp " + models + " --fvp-elf " + elf, code: 5},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Setenv("PATH", "/nowhere")
			t.Setenv(ethosutest.FVPFault, s.fault)
			script{args: run + " " + s.args, code: s.code, stderr: s.stderr}.run(t)
			if s.code != 0 {
				return
			}
			got, err := os.ReadFile("out/out0.bin")
			if err != nil {
				t.Fatal(err)
			}
			ethosutest.Compare(t, "out0.bin", got, want)
		})
	}
}

func TestDoctorListsNPUs(t *testing.T) {
	t.Setenv("PATH", ethosutest.InstallFVPs(t))
	script{args: "doctor", stdout: []string{"EthosUBackend", "--device drm", "--device arm", "--device fvp", "loaded: ", "Ethos-U65", "--device npu", "loaded"}}.run(t)
	script{args: "doctor --json", stdout: []string{`"npus"`, `"driver": "drm"`, `"state"`, `"driver": "npu"`}}.run(t)
}
