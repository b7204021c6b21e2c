package fvp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/fvp"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/internal/await"
)

func TestMain(m *testing.M) {
	ethosutest.RunFVP(runProgram)
	os.Exit(m.Run())
}

// runProgram is the executor_runner of the fake models: a program on the software NPU.
func runProgram(program []byte, inputs [][]byte) ([][]byte, error) {
	p, err := etrun.Parse(program, etrun.WithDelegates(all.Backends()...))
	if err != nil {
		return nil, err
	}
	m, err := p.Load(context.Background(), "forward")
	if err != nil {
		return nil, err
	}
	if len(inputs) != m.NumInputs() {
		return nil, fmt.Errorf("%d inputs, want %d", len(inputs), m.NumInputs())
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
	var out [][]byte
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			return nil, err
		}
		out = append(out, v.Tensor.Data)
	}
	return out, nil
}

// digits returns a whole program for the U85-256, with its input and output.
func digits(t testing.TB) (program, input, output []byte, c isa.Config) {
	t.Helper()
	var files [3][]byte
	for i, name := range []string{"digits.pte", "digits_in0.bin", "digits_out0.bin"} {
		var err error
		if files[i], err = os.ReadFile(filepath.Join("../../../testdata/ethosu/programs", name)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := isa.ParseConfig(0x20000118, 0)
	if err != nil {
		t.Fatal(err)
	}
	return files[0], files[1], files[2], c
}

// newRunner prepares runs of the program on a fake model.
func newRunner(t testing.TB, o fvp.RunnerOptions) (r *fvp.Runner, folder string) {
	t.Helper()
	program, _, _, c := digits(t)
	folder = ethosutest.InstallFVPs(t)
	path, err := fvp.Find(folder, c.Family)
	if err != nil {
		t.Fatal(err)
	}
	o.Config = c
	r, err = fvp.NewRunner(path, "firmware/corstone-320.elf", program, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, folder
}

func TestRunner(t *testing.T) {
	_, input, want, _ := digits(t)
	const command = "mps4_board.subsystem.cpu0.semihosting-cmd_line=executor_runner -m program.pte -o out -i i0.bin"
	for _, c := range []struct {
		name   string
		o      fvp.RunnerOptions
		starts int // for three runs
		args   []string
		not    string
	}{
		{"server", fvp.RunnerOptions{}, 1, []string{command + " --server_mode true", "mps4_board.subsystem.ethosu.extra_args=--fast"}, "--timelimit"},
		{"once", fvp.RunnerOptions{Once: true, TimeLimit: time.Minute}, 3, []string{command, "--timelimit", "61"}, "--server_mode"},
		{"exact", fvp.RunnerOptions{Exact: true}, 1, []string{"mps4_board.subsystem.ethosu.num_macs=256"}, "--fast"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, folder := newRunner(t, c.o)
			for range 3 {
				got, err := r.Run(context.Background(), [][]byte{input}, []int{len(want)})
				if err != nil {
					t.Fatal(err)
				}
				ethosutest.Compare(t, "output 0", got[0], want)
			}
			starts := ethosutest.Starts(t, folder)
			if len(starts) != c.starts {
				t.Errorf("the model was started %d times, want %d", len(starts), c.starts)
			}
			for _, a := range c.args {
				if !slices.Contains(starts[0], a) {
					t.Errorf("no argument %q in %q", a, starts[0])
				}
			}
			if all := strings.Join(starts[0], " "); strings.Contains(all, c.not) {
				t.Errorf("%q in %q", c.not, all)
			}
		})
	}
}

// TestRunnerFaults makes a model fail. The run must return an error, and the next one must work.
func TestRunnerFaults(t *testing.T) {
	_, input, output, _ := digits(t)
	for _, c := range []struct {
		fault string
		want  error
		text  string
	}{
		{"hang", fvp.ErrTimeout, ""},
		{"hard fault", fvp.ErrFailed, "Hard fault. irq=-13"},
		{"error line", fvp.ErrFailed, "Program loading failed"},
		{"crash", fvp.ErrFailed, "simulator error"},
		{"license", fvp.ErrEnded, "License checkout failed"},
		{"short output", fvp.ErrReply, "output 0 has 20 bytes, want 40"},
		{"output count", fvp.ErrReply, "2 outputs (out-0.bin, out-1.bin), want 1"},
	} {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, once %v", c.fault, once), func(t *testing.T) {
				r, _ := newRunner(t, fvp.RunnerOptions{Once: once, TimeLimit: 2 * time.Second})
				t.Setenv(ethosutest.FVPFault, c.fault)
				_, err := r.Run(context.Background(), [][]byte{input}, []int{len(output)})
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Fatalf("got %v, want %v: %s", err, c.want, c.text)
				}
				t.Setenv(ethosutest.FVPFault, "")
				got, err := r.Run(context.Background(), [][]byte{input}, []int{len(output)})
				if err != nil {
					t.Fatal(err)
				}
				ethosutest.Compare(t, "output 0", got[0], output)
			})
		}
	}
}

func TestRunnerRefuses(t *testing.T) {
	program, input, _, c := digits(t)
	path, _ := fvp.Find(ethosutest.InstallFVPs(t), c.Family)
	for _, r := range []struct {
		name, image string
		inputs      int
		want        error
	}{
		{"more inputs than fit the command line", "firmware/corstone-320.elf", 40, fvp.ErrUnsupported},
		{"no image", "nowhere.elf", 1, fvp.ErrMissing},
	} {
		if _, err := fvp.NewRunner(path, r.image, program, r.inputs, fvp.RunnerOptions{Config: c}); !errors.Is(err, r.want) {
			t.Errorf("%s: got %v, want %v", r.name, err, r.want)
		}
	}
	r, _ := newRunner(t, fvp.RunnerOptions{})
	if _, err := r.Run(context.Background(), [][]byte{input, input}, nil); !errors.Is(err, fvp.ErrUnsupported) {
		t.Errorf("two inputs for one: got %v, want %v", err, fvp.ErrUnsupported)
	}
}

// TestKillsItsOwn ends a model that hangs: it and its children are killed, other processes are not.
func TestKillsItsOwn(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { other.Process.Kill(); other.Wait() }()
	folder := t.TempDir()
	script := "#!/bin/sh\nsleep 60 &\necho $! >" + folder + "/child\necho $$ >" + folder + "/self\nwait\n"
	path := filepath.Join(folder, "FVP_Corstone_SSE-320")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, _, c := digits(t)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(500*time.Millisecond, cancel)
	if _, err := fvp.Start(ctx, path, fvp.Options{Config: c}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	for _, name := range []string{"self", "child"} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		await.True(t, "the model's "+name+" ends", func() bool { return !running(t, string(b)) })
	}
	if !running(t, strconv.Itoa(other.Process.Pid)) {
		t.Error("another process was killed")
	}
}

// running reports whether a process exists and is not a zombie.
func running(t *testing.T, pid string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
	if err != nil || syscall.Kill(n, 0) != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ")
	return !ok || !strings.HasPrefix(after, "Z")
}
