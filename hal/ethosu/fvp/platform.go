// Package fvp (no compatibility promise) runs Arm's Fixed Virtual Platforms of Corstone-300 and
// Corstone-320, which model an Ethos-U with a Cortex-M. A [Model] runs our firmware, which executes
// single jobs; a [Runner] runs the user's executor_runner, which executes programs.
//
// The models are distributed by Arm, not with this module.
package fvp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Reasons of an Error; match with errors.Is.
var (
	ErrMissing     = errors.New("no such model")           // model executable not found
	ErrUnsupported = errors.New("not for this model")      // unsupported NPU, or not enough memory
	ErrEnded       = errors.New("model ended")             // the model exited
	ErrFailed      = errors.New("model reports a failure") // the NPU or the program on the model failed
	ErrReply       = errors.New("wrong reply")             // its output files are invalid
	ErrTimeout     = errors.New("model timeout")           // not finished within the time limit
)

// Error is a failure of a model.
type Error struct {
	Op     string // "find", "start", "run"
	Reason error  // one of the above, or the context's cause
	Detail string
	Output string // last lines of the model's output
	Status uint32 // status of the NPU or the firmware
}

func (e *Error) Error() string {
	s := e.Op + ": " + e.Reason.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Output != "" {
		s += "; its last words: " + e.Output
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

func failure(op string, reason error, format string, args ...any) error {
	return &Error{Op: op, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// platform contains the differences between the boards.
type platform struct {
	name     string
	firmware []byte
	cpu      string // path of the processor's parameters
	npu      string // path of the NPU's parameters
	fixed    []string
}

var corstone300 = &platform{
	name: "Corstone-300", firmware: firmware300, cpu: "cpu0", npu: "ethosu",
	fixed: []string{
		"mps3_board.visualisation.disable-visualisation=1",
		"mps3_board.telnetterminal0.start_telnet=0",
		"mps3_board.uart0.out_file=-",
		"mps3_board.uart0.shutdown_on_eot=1",
	},
}

var corstone320 = &platform{
	name: "Corstone-320", firmware: firmware320, cpu: "mps4_board.subsystem.cpu0", npu: "mps4_board.subsystem.ethosu",
	fixed: []string{
		"mps4_board.visualisation.disable-visualisation=1",
		"vis_hdlcd.disable_visualisation=1",
		"mps4_board.telnetterminal0.start_telnet=0",
		"mps4_board.uart0.out_file=-",
		"mps4_board.uart0.unbuffered_output=1",
		"mps4_board.uart0.shutdown_on_eot=1",
	},
}

// model is the executable that models a family of NPUs.
type model struct {
	family   isa.Family
	program  string
	platform *platform
}

var models = []model{
	{isa.U55, "FVP_Corstone_SSE-300_Ethos-U55", corstone300},
	{isa.U65, "FVP_Corstone_SSE-300_Ethos-U65", corstone300},
	{isa.U85, "FVP_Corstone_SSE-320", corstone320},
}

// Programs returns the names of the models' executables.
func Programs() []string {
	var names []string
	for _, m := range models {
		names = append(names, m.program)
	}
	return names
}

// Find returns the path of the executable that models a family's NPUs. where is the executable
// itself, a folder that contains it up to three levels deep, or "" for the folders of PATH.
func Find(where string, f isa.Family) (string, error) {
	m := modelOf(f)
	if where == "" {
		path, err := exec.LookPath(m.program)
		if err != nil {
			return "", failure("find", ErrMissing, "%s is not in PATH", m.program)
		}
		return path, nil
	}
	info, err := os.Stat(where)
	if err != nil {
		return "", failure("find", ErrMissing, "%v", err)
	}
	if info.IsDir() {
		return findIn(where, m.program)
	}
	for _, other := range models {
		if other.family != f && filepath.Base(where) == other.program {
			return "", failure("find", ErrUnsupported, "%s models the %v, the program is for the %v", other.program, other.family, f)
		}
	}
	return where, nil
}

func modelOf(f isa.Family) *model {
	for i := range models {
		if models[i].family == f {
			return &models[i]
		}
	}
	return &models[0] // isa.ParseConfig returns no other family
}

// findIn searches a folder and the folders below it, as laid out by installers
// (models/Linux64_GCC-9.3/FVP_…).
func findIn(folder, name string) (string, error) {
	for pattern := ""; strings.Count(pattern, "*") <= 3; pattern = filepath.Join(pattern, "*") {
		found, _ := filepath.Glob(filepath.Join(escape(folder), pattern, name)) // the pattern is well formed
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", failure("find", ErrMissing, "no %s in %s", name, folder)
}

// escape quotes a folder's name for use in a pattern.
func escape(folder string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(folder)
}

// arguments returns a model's arguments: cwd is the folder of its files, image the program to run.
func (p *platform) arguments(c isa.Config, fast bool, cwd, image string, more ...string) []string {
	settings := append([]string{
		p.cpu + ".semihosting-enable=1",
		p.cpu + ".semihosting-stack_base=0",
		p.cpu + ".semihosting-heap_limit=0",
		p.cpu + ".semihosting-cwd=" + cwd,
		fmt.Sprintf("%s.num_macs=%d", p.npu, c.MACs),
	}, p.fixed...)
	if fast {
		settings = append(settings, p.npu+".extra_args=--fast")
	}
	var args []string
	for _, s := range append(settings, more...) {
		args = append(args, "-C", s)
	}
	return append(args, "-a", image)
}
