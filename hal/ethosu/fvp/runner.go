package fvp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/internal/openfile"
)

// Runner runs whole programs on a model with the user's executor_runner, built for the model's
// board with semihosting. It is used by one goroutine at a time.
type Runner struct {
	o       RunnerOptions
	path    string
	image   string
	folder  string
	inputs  int
	process *process // running process in server mode
}

// RunnerOptions are a runner's settings.
type RunnerOptions struct {
	Config isa.Config // the NPU that the program was compiled for
	Exact  bool       // cycle-accurate counts, at a fraction of the speed
	// Once restarts the model for each run, for an executor_runner without --server_mode.
	Once bool
	// TimeLimit is the time limit of the model: --timelimit, and a little more; 0 means ten
	// minutes.
	TimeLimit time.Duration
}

// Files of a runner. The names are short because the model truncates its command line.
const (
	programFile    = "program.pte"
	outputPrefix   = "out"
	maxCommandLine = 255
)

const defaultTimeLimit = 10 * time.Minute

// NewRunner prepares runs of a program on the model at path, as returned by [Find]. image is the
// executor_runner, an ELF file; program is a .pte file with the given number of inputs.
func NewRunner(path, image string, program []byte, inputs int, o RunnerOptions) (*Runner, error) {
	if o.TimeLimit <= 0 {
		o.TimeLimit = defaultTimeLimit
	}
	r := &Runner{o: o, inputs: inputs}
	if n := len(r.command()); n > maxCommandLine {
		return nil, failure("start", ErrUnsupported, "%d inputs make a command line of %d characters, the model takes %d", inputs, n, maxCommandLine)
	}
	var err error
	for _, f := range []struct {
		from  string
		to    *string
		check func(path string) error
	}{{path, &r.path, checkThere}, {image, &r.image, checkRegular}} {
		if *f.to, err = filepath.Abs(f.from); err == nil {
			err = f.check(*f.to)
		}
		if err != nil {
			return nil, failure("start", ErrMissing, "%v", err)
		}
	}
	if r.folder, err = os.MkdirTemp("", "etrun-fvp-"); err != nil {
		return nil, failure("start", ErrFailed, "%v", err)
	}
	if err := os.WriteFile(r.file(programFile), program, 0o600); err != nil {
		r.Close()
		return nil, failure("start", ErrFailed, "%v", err)
	}
	return r, nil
}

// checkThere returns an error if path does not exist. A model need not be readable to be started.
func checkThere(path string) error {
	_, err := os.Stat(path)
	return err
}

// checkRegular returns an error unless path is a file that a model can read.
func checkRegular(path string) error {
	f, err := openfile.Open(context.Background(), path, openfile.Rules{})
	if err == nil {
		f.Close()
	}
	return err
}

func (r *Runner) file(name string) string { return filepath.Join(r.folder, name) }

func inputFile(i int) string  { return fmt.Sprintf("i%d.bin", i) }
func outputFile(i int) string { return fmt.Sprintf("%s-%d.bin", outputPrefix, i) }

// command returns the command line of the executor_runner.
func (r *Runner) command() string {
	s := "executor_runner -m " + programFile + " -o " + outputPrefix
	for i := range r.inputs {
		s += " -i " + inputFile(i)
	}
	if !r.o.Once {
		s += " --server_mode true"
	}
	return s
}

// Lines printed by the executor_runner and the model.
var (
	servedLine = lazy.Pattern(`^SERVER_INFERENCE_DONE (\d+)`)
	failedLine = lazy.Pattern(`^[EF][: ]|Hard fault|Assertion|(?i:time ?limit)`)
)

// Run runs the program once. inputs are the raw bytes of its inputs in order, sizes the expected
// sizes of its outputs, -1 for any. After an error the model is restarted.
func (r *Runner) Run(ctx context.Context, inputs [][]byte, sizes []int) ([][]byte, error) {
	if len(inputs) != r.inputs {
		return nil, failure("run", ErrUnsupported, "%d inputs, want %d", len(inputs), r.inputs)
	}
	if err := r.prepare(inputs); err != nil {
		return nil, failure("run", ErrFailed, "%v", err)
	}
	err := r.infer(ctx)
	var out [][]byte
	if err == nil {
		out, err = r.collect(sizes)
	}
	if err != nil {
		r.end(0)
		return nil, err
	}
	return out, nil
}

// written returns the existing output files.
func (r *Runner) written() []string {
	all, _ := os.ReadDir(r.folder) // our own folder, without which nothing works
	var names []string
	for _, e := range all {
		if strings.HasPrefix(e.Name(), outputPrefix+"-") {
			names = append(names, e.Name())
		}
	}
	return names
}

// prepare writes the inputs and removes the last outputs.
func (r *Runner) prepare(inputs [][]byte) error {
	for _, name := range r.written() {
		if err := os.Remove(r.file(name)); err != nil {
			return err
		}
	}
	for i, b := range inputs {
		if err := os.WriteFile(r.file(inputFile(i)), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start starts the model if it does not run.
func (r *Runner) start() (err error) {
	if r.process != nil && r.process.alive() {
		return nil
	}
	r.end(0)
	p := modelOf(r.o.Config.Family).platform
	args := p.arguments(r.o.Config, !r.o.Exact, r.folder, r.image, p.cpu+".semihosting-cmd_line="+r.command())
	if r.o.Once {
		args = append(args, "--timelimit", fmt.Sprint(int(r.o.TimeLimit.Seconds()+1)))
	}
	keep := func(line string) bool { return servedLine().MatchString(line) || failedLine().MatchString(line) }
	r.process, err = start(r.path, args, r.folder, keep)
	return err
}

// infer runs one inference on the model.
func (r *Runner) infer(ctx context.Context) error {
	if err := r.start(); err != nil {
		return err
	}
	limit := time.NewTimer(r.o.TimeLimit + endGrace)
	defer limit.Stop()
	if r.o.Once {
		return r.toEnd(ctx, limit.C)
	}
	if err := r.process.enter(); err != nil {
		return r.process.error("run", ErrEnded, "%v", err)
	}
	line, err := r.process.line(ctx, "run", limit.C)
	if err != nil {
		return err
	}
	if m := servedLine().FindStringSubmatch(line); m == nil {
		return r.process.error("run", ErrFailed, "%s", line)
	}
	return nil
}

// toEnd waits for the model's end. It succeeded if it did not report a failure, whatever its exit
// status.
func (r *Runner) toEnd(ctx context.Context, limit <-chan time.Time) error {
	line, err := r.process.line(ctx, "run", limit)
	if err == nil {
		return r.process.error("run", ErrFailed, "%s", line)
	}
	if !errors.Is(err, ErrEnded) || r.process.how() != endedWell {
		return err
	}
	return nil
}

// collect reads the outputs.
func (r *Runner) collect(sizes []int) ([][]byte, error) {
	out := make([][]byte, len(sizes))
	for i, want := range sizes {
		info, err := os.Stat(r.file(outputFile(i)))
		if err == nil && want >= 0 && info.Size() != int64(want) {
			return nil, failure("run", ErrReply, "output %d has %d bytes, want %d", i, info.Size(), want)
		}
		if err == nil {
			out[i], err = os.ReadFile(r.file(outputFile(i)))
		}
		if err != nil {
			return nil, failure("run", ErrReply, "output %d: %v", i, err)
		}
	}
	if all := r.written(); len(all) != len(sizes) {
		return nil, failure("run", ErrReply, "%d outputs (%s), want %d", len(all), strings.Join(all, ", "), len(sizes))
	}
	return out, nil
}

// end stops the model if it runs.
func (r *Runner) end(grace time.Duration) {
	if r.process != nil {
		r.process.stop(grace)
		r.process = nil
	}
}

// Close stops the model and removes its files.
func (r *Runner) Close() error {
	r.end(endGrace)
	if err := os.RemoveAll(r.folder); err != nil {
		return failure("close", ErrFailed, "%v", err)
	}
	return nil
}
