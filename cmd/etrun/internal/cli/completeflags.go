package cli

import (
	"github.com/spf13/cobra"

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

// CompleteFlags adds completion for the flags of a command and its subcommands.
func CompleteFlags(c *cobra.Command) {
	words := session.Words()
	for name, list := range flagWords {
		words[name] = list()
	}
	for name, list := range words {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for name, ends := range flagFiles {
		if c.Flags().Lookup(name) != nil {
			_ = c.MarkFlagFilename(name, ends...)
		}
	}
	if _, there := c.GetFlagCompletionFunc("method"); !there && c.Flags().Lookup("method") != nil {
		_ = c.RegisterFlagCompletionFunc("method", CompleteMethod)
	}
	for _, sub := range c.Commands() {
		CompleteFlags(sub)
	}
}
