package fvp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// startTimeout is the time limit for the start of the firmware.
const startTimeout = 2 * time.Minute

// endGrace is the time limit for a model to exit by itself.
const endGrace = 2 * time.Second

// Model is a running model with our firmware. It is used by one goroutine at a time.
type Model struct {
	Sizes [numPools]uint32 // bytes of the pools

	process  *process
	folder   string
	sequence uint32
	answer   func(folder string) error // executes jobs in place of a missing NPU
}

// Options of a model.
type Options struct {
	Config isa.Config // the required NPU
	Exact  bool       // cycle-accurate counts, at a fraction of the speed
}

// Start starts the model's executable at path, as returned by [Find], and waits for its firmware.
// ctx ends the start, not the model.
func Start(ctx context.Context, path string, o Options) (*Model, error) {
	p := modelOf(o.Config.Family).platform
	return launch(ctx, path, p.firmware, o.Config, func(folder, image string) []string {
		return p.arguments(o.Config, !o.Exact, folder, image)
	})
}

// launch starts an executable that runs an image.
func launch(ctx context.Context, path string, image []byte, c isa.Config, arguments func(folder, image string) []string) (*Model, error) {
	folder, err := os.MkdirTemp("", "etrun-fvp-")
	if err != nil {
		return nil, failure("start", ErrFailed, "%v", err)
	}
	m := &Model{folder: folder}
	if err = m.boot(path, image, arguments); err == nil {
		err = m.greet(ctx, c)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// boot starts the program.
func (m *Model) boot(path string, image []byte, arguments func(folder, image string) []string) error {
	elf := m.file("firmware.elf")
	if err := os.WriteFile(elf, image, 0o600); err != nil {
		return failure("start", ErrFailed, "%v", err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return failure("start", ErrMissing, "%v", err)
	}
	keep := func(line string) bool { return strings.HasPrefix(line, prefix) }
	m.process, err = start(path, arguments(m.folder, elf), m.folder, keep)
	return err
}

// Lines printed by the firmware: prefixes, with hexadecimal numbers.
const (
	prefix    = "etrun: "
	greetLine = prefix + "firmware %x %x %x %x" // version, configuration, bytes of SRAM, of DDR
	doneLine  = prefix + "done %x %x %x"        // sequence, status, detail
	npuLine   = prefix + "npu"                  // the host executes the job
	anyConfig = 0xffffffff                      // then
	// comparable is the fields of a configuration that a command stream depends on: product,
	// command stream version, MACs.
	comparable = 0xf00000ff
)

// greet waits for the firmware and checks its version and configuration.
func (m *Model) greet(ctx context.Context, c isa.Config) error {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	line, err := m.process.line(ctx, "start", timeout.C)
	if err != nil {
		return err
	}
	var version, config uint32
	if n, _ := fmt.Sscanf(line, greetLine, &version, &config, &m.Sizes[SRAM], &m.Sizes[DDR]); n != 4 {
		return m.process.error("start", ErrFailed, "%q", line)
	}
	switch {
	case version != firmwareVersion:
		return failure("start", ErrFailed, "firmware of version %d, want %d", version, firmwareVersion)
	case config == 0:
		return failure("start", ErrUnsupported, "no NPU where the board has it")
	case config != anyConfig && (config^c.Word)&comparable != 0:
		return failure("start", ErrUnsupported, "the NPU's configuration is %#x, the program wants %#x (%v)", config, c.Word, c)
	}
	return nil
}

// Alive reports whether the model is running.
func (m *Model) Alive() bool { return m.process.alive() }

// Run runs a job. It waits until the job is done, ctx ends, or timeout (if not 0) expires; in the
// latter two cases, and if the model fails, the model is stopped and cannot be used any more.
func (m *Model) Run(ctx context.Context, j *Job, timeout time.Duration) (*Result, error) {
	r, err := m.run(ctx, j, timeout)
	var e *Error
	if err != nil && !(errors.As(err, &e) && e.Status != 0 && m.Alive()) {
		m.process.stop(0)
	}
	return r, err
}

func (m *Model) run(ctx context.Context, j *Job, timeout time.Duration) (*Result, error) {
	m.sequence++
	if err := m.send(j); err != nil {
		return nil, failure("run", ErrFailed, "%v", err)
	}
	if err := m.process.enter(); err != nil {
		return nil, m.process.error("run", ErrEnded, "%v", err)
	}
	var over <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		over = t.C
	}
	for {
		line, err := m.process.line(ctx, "run", over)
		if err != nil {
			return nil, err
		}
		var sequence, status, detail uint32
		n, _ := fmt.Sscanf(line, doneLine, &sequence, &status, &detail)
		switch {
		case line == npuLine && m.answer != nil:
			if err := m.help(); err != nil {
				return nil, err
			}
		case n != 3 || sequence != m.sequence && status == statusOK:
			return nil, m.process.error("run", ErrFailed, "%q", line)
		case status != statusOK:
			return nil, refusal(status, detail)
		default:
			return m.receive(j)
		}
	}
}

// refusal converts a firmware status to an error.
func refusal(status, detail uint32) error {
	s, ok := statuses[status]
	if !ok {
		return failure("run", ErrReply, "status %d of the firmware", status)
	}
	return &Error{Op: "run", Reason: s.reason, Detail: fmt.Sprintf(s.text, detail), Status: status}
}

// help executes the job in place of the NPU.
func (m *Model) help() error {
	if err := m.answer(m.folder); err != nil {
		return failure("run", ErrFailed, "%v", err)
	}
	if err := m.process.enter(); err != nil {
		return m.process.error("run", ErrEnded, "%v", err)
	}
	return nil
}

func (m *Model) file(name string) string { return filepath.Join(m.folder, name) }

// send writes the job file and removes the last reply.
func (m *Model) send(j *Job) error {
	if err := os.Remove(m.file("reply.bin")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Create(m.file("job.bin"))
	if err != nil {
		return err
	}
	err = j.encode(f, m.sequence)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// receive reads the reply, limited to the expected size.
func (m *Model) receive(j *Job) (*Result, error) {
	info, err := os.Stat(m.file("reply.bin"))
	if err != nil {
		return nil, failure("run", ErrReply, "%v", err)
	}
	if want := int64(replyBytes + j.outputs()); info.Size() != want {
		return nil, failure("run", ErrReply, "reply.bin has %d bytes, want %d", info.Size(), want)
	}
	b, err := os.ReadFile(m.file("reply.bin"))
	if err != nil {
		return nil, failure("run", ErrReply, "%v", err)
	}
	r, err := j.decode(b, m.sequence)
	if err != nil {
		return nil, failure("run", ErrReply, "reply.bin: %v", err)
	}
	return r, nil
}

// Close stops the model and removes its files.
func (m *Model) Close() error {
	if m.process != nil {
		m.process.stop(endGrace)
	}
	if err := os.RemoveAll(m.folder); err != nil {
		return failure("close", ErrFailed, "%v", err)
	}
	return nil
}
