package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/hal/ethosu"
)

// flagWords are the values of flags, for shell completion.
var flagWords = map[string]func() []string{
	"device": func() []string {
		names := []string{"auto"}
		for _, d := range ethosu.Drivers() {
			names = append(names, d.Name)
		}
		return names
	},
	"by":     func() []string { return []string{"operator", "instruction"} },
	"format": func() []string { return []string{"table", "json", "benchstat"} },
	"memory": func() []string { return []string{"constants=", "scratch=", "fast="} },
}

// flagFiles are the extensions of the files that flags take.
var flagFiles = map[string][]string{
	"data": {"ptd"}, "qparams": {"json"}, "against": {"npz"}, "output-npz": {"npz"}, "html": {"html"}, "svg": {"svg"}, "flame": {"svg"},
	"trace": {"json"}, "pprof": {"pb.gz"}, "etdump": {"etdp"},
}

// Values is the annotation of a flag that lists its values, where those of its name are another command's.
const Values = "values"

// Completes reports whether a command line is a shell's question for completions.
func Completes(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// CompleteFlags adds completion for the flags of a command and its subcommands, which cobra keeps until the process ends.
func CompleteFlags(c *cobra.Command) {
	words := session.Words()
	for name, list := range flagWords {
		words[name] = list()
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		list, known := words[f.Name]
		if own := f.Annotations[Values]; own != nil {
			list, known = own, true
		}
		switch {
		case known:
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		case f.Name == "method":
			_ = c.RegisterFlagCompletionFunc(f.Name, completeMethod)
		case flagFiles[f.Name] != nil:
			_ = c.MarkFlagFilename(f.Name, flagFiles[f.Name]...)
		}
	})
	for _, sub := range c.Commands() {
		CompleteFlags(sub)
	}
}
