package main

import (
	"context"
	"reflect"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/daemon"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/all"
)

// serveVariables is the prefix of environment variables with flags: ETRUN_SERVE_MAX_BODY is --max-body.
const serveVariables = "ETRUN_SERVE_"

// serveCommand answers requests over HTTP.
type serveCommand struct {
	*app
	daemon.Settings
	session.Options
	daemon.Limits
	config string
}

const serveHelp = `Answer inference requests over HTTP in the Open Inference Protocol, version 2,
and with --tokenizer those for text in the protocol of OpenAI's API.

A model is named after its file, unless it is given as NAME=PATH. Its methods are its versions. The file of --config is a JSON object
whose keys are flag names, and "models", an array of objects with "path", "name" and flags of their own. Flags of the command line
override those of the file. A flag can also be given as an environment variable, --max-body as ETRUN_SERVE_MAX_BODY: between the two.

SIGHUP reloads certificates, tokens, the configuration of models, and models that have changed: a model that fails its self-test is not replaced. The models of
--models FOLDER come and go with its files. After SIGTERM requests in progress may take up to --drain.
`

const serveExamples = `  etrun serve model.pte
  etrun serve digits=a.bpte words=b.pte --listen unix:/run/etrun.sock
  etrun serve model.pte --listen 0.0.0.0:8443 --tls-cert cert.pem \
      --tls-key key.pem --token-file tokens
  etrun serve --models /var/lib/etrun --models-memory 2GiB --idle 10m
  etrun serve --config /etc/etrun/serve.json`

func newServe(a *app) *cobra.Command {
	s := &serveCommand{app: a, Settings: daemon.Defaults(), Options: session.Options{Say: a.Note, Serves: true}, Limits: daemon.DefaultLimits()}
	c := &cobra.Command{
		Use:               "serve MODEL.pte...",
		Short:             "Answer inference requests over HTTP",
		Long:              serveHelp,
		Example:           serveExamples,
		ValidArgsFunction: cli.CompletePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return s.run(c.Context(), c, args) },
	}
	s.addFlags(c.Flags())
	return c
}

func (s *serveCommand) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.config, "config", "", "read flags and models from `FILE`.json")
	s.Settings.AddFlags(flags)
	s.Limits.AddFlags(flags)
	s.Options.AddFlags(flags)
}

// newWorker is the hidden command of an isolated model's process.
func newWorker() *cobra.Command {
	return &cobra.Command{Use: daemon.WorkerCommand, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return daemon.Work(args) }}
}

func (s *serveCommand) run(ctx context.Context, c *cobra.Command, args []string) error {
	if s.JSON {
		return session.Usage("--json: the log has a format of its own, --log-format json")
	}
	if err := session.SetFromEnvironment(c.Flags(), serveVariables); err != nil {
		return err
	}
	var given []string // the flags of the command line and the environment, before those of the file are set
	c.Flags().Visit(func(f *pflag.Flag) {
		for _, word := range session.FlagWords(f) {
			given = append(given, "--"+f.Name+"="+word)
		}
	})
	models, err := daemon.Models(ctx, c.Flags(), s.config, args, &s.Options, &s.Limits)
	if err != nil {
		return err
	}
	d := &daemon.Daemon{Settings: s.Settings, Models: models, Common: &s.Options, CommonLimits: &s.Limits,
		Version: version(), Backends: all.Backends(), Log: s.Notes}
	d.Reread = func(ctx context.Context) (*daemon.Daemon, bool, error) { return s.reread(ctx, given, args) }
	return d.Run(ctx)
}

// reread reads the models again, and reports whether other settings have changed.
func (s *serveCommand) reread(ctx context.Context, given, args []string) (d *daemon.Daemon, others bool, err error) {
	again := &serveCommand{app: s.app, Settings: daemon.Defaults(), Options: session.Options{Say: s.Note, Serves: true}, Limits: daemon.DefaultLimits()}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true // those of all commands
	again.addFlags(flags)
	if err := flags.Parse(given); err != nil {
		return nil, false, err
	}
	models, err := daemon.Models(ctx, flags, again.config, args, &again.Options, &again.Limits)
	d = &daemon.Daemon{Models: models, Common: &again.Options, CommonLimits: &again.Limits}
	return d, !reflect.DeepEqual(again.Settings, s.Settings), err
}
