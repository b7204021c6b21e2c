package session

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
)

// Call is one call of a method with its inputs.
type Call struct {
	Method string // empty: that of the previous call, or forward
	Inputs []input.Spec
}

// Fed is an output that is an input of the next run.
type Fed struct{ Output, Input int }

// AddFeed adds a pair of --feed to a list.
func AddFeed(l *[]Fed, text string) error {
	from, to, ok := strings.Cut(text, "=")
	i, err := strconv.Atoi(from)
	k, otherErr := strconv.Atoi(to)
	if !ok || err != nil || otherErr != nil || i < 0 || k < 0 {
		return errors.New("want OUTPUT=INPUT, two indexes")
	}
	if slices.ContainsFunc(*l, func(f Fed) bool { return f.Input == k }) {
		return errors.New("input " + to + " is fed already")
	}
	*l = append(*l, Fed{i, k})
	return nil
}

// Calls are the calls of a command line. Their flags depend on the order, so each is
// recorded when it is parsed: --next starts a call, --method and --input apply to the
// current one.
type Calls []Call

func (l *Calls) last() *Call { return &(*l)[len(*l)-1] }

// AddFlags adds --method, --input and --next.
func (l *Calls) AddFlags(flags *pflag.FlagSet) {
	flags.Var(OnSet{"NAME", l.setMethod}, "method", `method to run (default "forward", for further calls the previous one)`)
	l.AddInputFlags(flags, "start the inputs of another call on the loaded program")
}

// AddInputFlags adds --input and --next, whose usage is given.
func (l *Calls) AddInputFlags(flags *pflag.FlagSet, next string) {
	*l = Calls{{}}
	flags.VarP(OnSet{"SPEC", l.addInput}, "input", "i", "one input, in order; may be repeated (default: random elements)")
	flags.Var(OnSet{"bool", l.next}, "next", next)
	flags.Lookup("next").NoOptDefVal = "true"
}

func (l *Calls) setMethod(name string) error {
	if name == "" { // an unset shell variable
		return errors.New("want NAME")
	}
	if l.last().Method != "" {
		return Usage("a second method for one call; use --next for another call")
	}
	l.last().Method = name
	return nil
}

func (l *Calls) addInput(text string) error {
	s, err := input.Parse(text)
	if err != nil {
		return err
	}
	l.last().Inputs = append(l.last().Inputs, s)
	return nil
}

func (l *Calls) next(text string) error {
	if text != "true" {
		return Usage("--next takes no value")
	}
	*l = append(*l, Call{})
	return nil
}

// inherit sets empty methods to the method of the previous call.
func (l Calls) inherit() {
	for i := 1; i < len(l); i++ {
		if l[i].Method == "" {
			l[i].Method = l[i-1].Method
		}
	}
}

// HasInputs reports whether any call has inputs.
func (l Calls) HasInputs() bool {
	for _, c := range l {
		if len(c.Inputs) > 0 {
			return true
		}
	}
	return false
}

// OnSet is a flag that acts when it is parsed.
type OnSet struct {
	Kind string
	Act  func(string) error
}

// Set implements pflag.Value.
func (f OnSet) Set(text string) error { return f.Act(text) }

// String implements pflag.Value.
func (f OnSet) String() string { return "" }

// Type implements pflag.Value.
func (f OnSet) Type() string { return f.Kind }
