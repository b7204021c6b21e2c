// Package advice (no compatibility promise) has the ways out of errors and warnings in the words of their readers. The messages of
// the library name its options; the command line replaces these words by those that name its flags.
package advice

import "strings"

// Advice is a way out, in the words of each reader.
type Advice struct{ library, command string }

// String returns the words of the library.
func (a *Advice) String() string { return a.library }

// Command returns the words of the command line.
func (a *Advice) Command() string { return a.command }

// The ways out. A row's words of the library are in its messages exactly as here.
var (
	Backends = &Advice{"pass them with WithDelegates", "this build has none of that name; etrun doctor lists its backends"}
	Data     = &Advice{"pass their files with WithDataFiles", "pass --data FILE.ptd"}
	Memory   = &Advice{"WithMaxMemory allows more", "a larger --max-memory allows it"}
	Repair   = &Advice{"WithoutRepair runs the program unchanged", "--repair=off runs the program unchanged"}
	Endless  = &Advice{"WithLimits allows more, Limits.Instructions", "the program probably never ends"}
	Library  = &Advice{`"etrun doctor --fix" downloads it, "make deps" does in a checkout; ETRUN_XNNPACK names its folder`,
		"etrun doctor --fix downloads it"}
)

var commands = func() *strings.Replacer {
	var words []string
	for _, a := range []*Advice{Backends, Data, Memory, Repair, Endless, Library} {
		words = append(words, a.library, a.command)
	}
	return strings.NewReplacer(words...)
}()

// Command returns a message in the words of the command line.
func Command(text string) string { return commands.Replace(text) }

// GoEngine says what it means that libXNNPACK is missing: the Go engine's time divided by the library's, the medians and the largest
// of the programs in docs/performance.md by instruction set.
const GoEngine = "the Go engine runs, typically in 0.9 to 1.1 times the library's time, by processor, some programs in up to 4.3 times"
