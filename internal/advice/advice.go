// Package advice (no compatibility promise) has the ways out of errors and warnings in the words of their readers. The messages of
// the library name its options; the command line replaces these words by those that name its flags, bindings of other languages by those
// that name theirs.
package advice

import "strings"

// Advice is a way out, in the words of each reader.
type Advice struct{ library, command, binding string }

// String returns the words of the library.
func (a *Advice) String() string { return a.library }

// Command returns the words of the command line.
func (a *Advice) Command() string { return a.command }

// all are the ways out.
var all = []*Advice{Backends, Data, Memory, Repair, Endless, Library, Variable}

// The ways out. A row's words of the library are in its messages exactly as here.
var (
	Backends = &Advice{"pass them with WithDelegates", "this build has none of that name; etrun doctor lists its backends",
		"this build has none of that name, or the option delegates excludes it"}
	Data   = &Advice{"pass their files with WithDataFiles", "pass --data FILE.ptd", "the option data_files names them"}
	Memory = &Advice{"WithMaxMemory allows more", "a larger --max-memory allows it", "the option max_memory allows more"}
	Repair = &Advice{"WithoutRepair runs the program unchanged", "--repair=off runs the program unchanged",
		"the option repair, with off, runs the program unchanged"}
	Endless = &Advice{"WithLimits allows more, Limits.Instructions", "the program probably never ends",
		"the program probably never ends"}
	Library = &Advice{`"etrun doctor --fix" downloads it, "make deps" does in a checkout; ETRUN_XNNPACK names its folder`,
		"etrun doctor --fix downloads it",
		`"etrun doctor --fix" downloads it; the option xnnpack_library names its folder`}
	Variable = &Advice{"unset it, or run the program on EngineGo", "unset it, or run the program with --xnnpack go",
		`unset it, or run the program with the option xnnpack, "go"`}
)

// words returns the replacement of the words of the library.
func words(of func(a *Advice) string) *strings.Replacer {
	var pairs []string
	for _, a := range all {
		pairs = append(pairs, a.library, of(a))
	}
	return strings.NewReplacer(pairs...)
}

var (
	commands = words(func(a *Advice) string { return a.command })
	bindings = words(func(a *Advice) string { return a.binding })
)

// Command returns a message in the words of the command line.
func Command(text string) string { return commands.Replace(text) }

// Binding returns a message in the words of bindings, which have the options of libetrun.
func Binding(text string) string { return bindings.Replace(text) }

// GoEngine says what it means that libXNNPACK is missing: the Go engine's time divided by the library's, the medians and the largest
// of the programs in docs/performance.md by instruction set.
const GoEngine = "the Go engine runs, typically in 0.9 to 1.1 times the library's time, by processor, some programs in up to 4.3 times"
