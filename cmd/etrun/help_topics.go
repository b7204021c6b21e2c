package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// brief are the commands whose --help shows these flags only; --help-all shows all of them by topic.
var brief = map[string][]string{
	"etrun":    {"input", "output", "repeat", "version"},
	"run":      {"input", "method", "next", "data", "output", "output-dir", "labels", "top-k", "softmax", "repeat", "profile", "threads", "device", "max-memory"},
	"generate": {"prompt", "tokenizer", "max-tokens", "temperature", "top-k", "top-p", "stop", "chat", "system", "template", "threads", "max-memory", "seed"},
	"serve": {"config", "listen", "tls-cert", "tls-key", "token-file", "control", "tokenizer", "instances", "queue", "max-batch", "isolate", "no-page",
		"threads"},
}

// topic is a group of flags.
type topic struct {
	title string
	flags []string
}

// topics are the groups of flags of commands; the shared ones follow, and the flags of none come last.
var topics = map[string][]topic{
	"run": {
		{"Inputs", []string{"method", "input", "next", "feed", "jsonl", "reset", "seed"}},
		{"Outputs", []string{"output", "output-dir", "output-npz", "decode", "draw", "top-k", "softmax", "labels"}},
		{"Time and values of instructions", []string{"repeat", "profile", "trace", "etdump", "etdump-values", "pprof", "flame", "dump-intermediates", "trap-nan"}},
	},
	"generate": {
		{"Text", []string{"prompt", "tokens", "echo", "tokenizer", "method", "context", "bos", "eos", "max-tokens", "stop", "ignore-eos", "logprobs",
			"top-logprobs", "lookup"}},
		{"Sampling", []string{"temperature", "top-k", "top-p", "min-p", "repeat-penalty", "repeat-window", "presence-penalty", "frequency-penalty",
			"logit-bias", "seed"}},
		{"Chats", []string{"chat", "system", "template"}},
	},
	"serve": {
		{"Network and access", []string{"config", "listen", "grpc-address", "metrics-address", "host", "cors", "socket-mode", "insecure", "tls-cert",
			"tls-key", "client-ca", "token-file", "control", "no-page"}},
		{"Limits of requests", []string{"max-body", "max-busy", "body-timeout", "max-connections", "drain"}},
		{"Log and profiles", []string{"debug", "log-format", "access-log", "access-log-probes"}},
		{"Models", []string{"method", "instances", "queue", "timeout", "max-batch", "batch-delay", "sequences", "sequence-idle", "sequence-memory",
			"isolate", "isolate-memory", "trust"}},
		{"Models that come and go", []string{"models", "models-interval", "models-memory", "load", "idle", "strict-readiness"}},
		{"Language models", []string{"tokenizer", "template", "texts", "text-memory", "pooling", "normalize"}},
	},
}

// sharedTopics are the groups of the flags of programs.
var sharedTopics = []topic{
	{"Program", []string{"data", "qparams", "repair", "strict-plan", "mmap"}},
	{"Engines and lowering", []string{"threads", "xnnpack", "weights-cache", "device", "fvp", "fvp-elf", "lower"}},
	{"Memory", []string{"max-memory", "kv-cache", "plan"}},
}

// addHelpAll adds --help-all to a command.
func addHelpAll(c *cobra.Command) {
	check, run, asked := c.Args, c.RunE, false
	c.Flags().BoolVar(&asked, "help-all", false, "show all flags by topic")
	c.Args = func(c *cobra.Command, args []string) error {
		if asked || check == nil {
			return nil
		}
		return check(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if asked {
			return helpAll(c.OutOrStdout(), c)
		}
		return run(c, args)
	}
}

// help writes the help of a command: brief if it has many flags.
func help(w io.Writer, c *cobra.Command) error {
	flags, isBrief := brief[c.Name()]
	if !isBrief {
		if c.Long != "" || c.Short != "" {
			fmt.Fprintf(w, "%s\n\n", strings.TrimRight(longOf(c), "\n"))
		}
		return usage(w, c)
	}
	var b strings.Builder
	first, _, _ := strings.Cut(wrap(c.Long), "\n\n")
	b.WriteString(strings.TrimRight(first, "\n") + "\n\n")
	writeUse(&b, c)
	writeCommands(&b, c)
	writeFlags(&b, "Flags", only(c, flags))
	n := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	more := fmt.Sprintf("%s --help-all explains all %d flags by topic", c.CommandPath(), n)
	if c.HasAvailableSubCommands() {
		more += fmt.Sprintf(", %s COMMAND --help a command", c.CommandPath())
	}
	_, err := io.WriteString(w, b.String()+"\n\n"+wrap(more+".")+"\n")
	return err
}

func longOf(c *cobra.Command) string {
	if c.Long != "" {
		return wrap(c.Long)
	}
	return c.Short
}

// helpAll writes the help of a command with all flags by topic.
func helpAll(w io.Writer, c *cobra.Command) error {
	var b strings.Builder
	b.WriteString(strings.TrimRight(longOf(c), "\n") + "\n\n")
	writeUse(&b, c)
	writeCommands(&b, c)
	name := c.Name()
	if c == c.Root() {
		name = "run"
	}
	var shown []string
	for _, t := range slices.Concat(topics[name], sharedTopics) {
		writeFlags(&b, t.title, only(c, t.flags))
		shown = append(shown, t.flags...)
	}
	var rest []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(shown, f.Name) {
			rest = append(rest, f.Name)
		}
	})
	writeFlags(&b, "Other flags", only(c, rest))
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// only returns the flags of a command with these names, in this order.
func only(c *cobra.Command, names []string) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil && set.Lookup(name) == nil {
			set.AddFlag(f)
		}
	}
	return set
}
