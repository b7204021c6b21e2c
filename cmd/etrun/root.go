package main

import (
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/bench"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/compare"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/embed"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/generate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/load"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/ops"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/plan"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/tokenize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/transcribe"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/spf13/cobra"
)

// commands is the table of commands; a new command is a file and a row.
var commands = []struct {
	group string
	make  func(*app) *cobra.Command
}{
	{"run", newRun}, {"run", of(generate.New)}, {"run", of(embed.New)}, {"run", of(transcribe.New)}, {"run", newServe}, {"run", newEval}, {"run", newVerify}, {"run", of(compare.New)}, {"run", of(bench.New)}, {"run", newProfile},
	{"run", of(load.New)},
	{"look", newCheck}, {"look", newInspect}, {"look", of(diff.New)}, {"look", newRepair}, {"look", newLower}, {"look", newQuantize}, {"look", of(plan.New)}, {"look", newReport}, {"look", newView},
	{"look", addTrace}, {"look", of(tokenize.New)},
	{"here", of(ops.New)}, {"here", newDoctor}, {"here", newVersion},
}

// of makes a row of a command that needs only the streams and the global flags.
func of(command func(*cli.App) *cobra.Command) func(*app) *cobra.Command {
	return func(a *app) *cobra.Command { return command(&a.App) }
}

// groups are the headings of --help.
var groups = []*cobra.Group{
	{ID: "run", Title: "Run programs:"}, {ID: "look", Title: "Inspect programs:"}, {ID: "here", Title: "This build and machine:"},
}

func newRoot(a *app) *cobra.Command {
	root := newRun(a)
	session.AddTimeLimit(root.Flags())
	root.Use, root.Short, root.Args, root.ValidArgsFunction = "etrun MODEL.pte", "Run ExecuTorch programs", modelOrCommand, completeRoot
	root.AddGroup(groups...)
	for _, row := range commands {
		c := row.make(a)
		c.GroupID = row.group
		for _, of := range append(c.Commands(), c) {
			session.AddTimeLimit(of.Flags())
		}
		root.AddCommand(c)
	}
	root.AddCommand(newRetarget(a), newWorker())
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID("here")
	root.SetCompletionCommandGroupID("here")
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { _ = help(c.OutOrStdout(), c) }) // results keeps the error
	root.SetUsageFunc(func(c *cobra.Command) error { return usage(c.OutOrStderr(), c) })
	formatHelp(root)
	addVersion(a, root)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "write one JSON object to stdout, messages to stderr")
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "write only errors to stderr, and what of inputs is cut off")
	root.SetFlagErrorFunc(cli.FlagFault)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return a.prepare(c) }
	addHelpAll(root)
	for _, c := range root.Commands() {
		if _, ok := brief[c.Name()]; ok {
			addHelpAll(c)
		}
	}
	return root
}

// prepare checks the flags of a command, and sets its time limit.
func (a *app) prepare(c *cobra.Command) error {
	if err := session.RejectEmpty(c.Flags()); err != nil {
		return err
	}
	ctx, release := session.Limit(c.Context(), c.Flags())
	a.release = release
	if a.abandon != nil {
		stop := session.EndOverdue(ctx, a.abandon)
		a.release = func() {
			stop()
			release()
		}
	}
	c.SetContext(ctx)
	return nil
}

// addVersion adds --version, in addition to the command of that name.
func addVersion(a *app, root *cobra.Command) {
	check, run, asked := root.Args, root.RunE, false
	root.Flags().BoolVarP(&asked, "version", "v", false, "show the version of this build")
	root.Args = func(c *cobra.Command, args []string) error {
		if asked {
			return nil
		}
		return check(c, args)
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if asked {
			return a.writeVersion()
		}
		if len(args) == 0 {
			return shortHelp(c)
		}
		return run(c, args)
	}
}

// completeRoot leaves files to the shell: a file filter would hide the commands.
func completeRoot(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
