// Package load is the command load, which measures a server.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

// loadCommand sends requests to a server.
type loadCommand struct {
	*cli.App
	target
	requests
	plan      load.Plan
	clients   []int
	rates     []float64
	arrivals  string
	maxErrors float64
	html      string
}

const loadHelp = `Send requests to a server and measure its answers: throughput, latency and failures, at
several numbers of clients (--clients), each of which sends its next request when its last
one was answered, or at several rates (--rate), at which requests are sent whether or
not earlier ones have been answered. At a rate the latency of a request is from when it
was due, also if no client was free to send it. URL is http://HOST:PORT,
https://HOST:PORT, unix:PATH, or grpc://HOST:PORT or grpcs://HOST:PORT for gRPC without
and with TLS.

Requests are inferences of the Open Inference Protocol, version 2, with inputs as for
etrun run, or, with --text, texts of OpenAI's API as streams. Percentiles and
throughputs have 99 % intervals, from parts of the time of a level. Failed
requests are counted by class; more than --max-errors are exit code 1. An interrupt
ends the measurement and prints the figures so far.
`

// New returns the command.
func New(a *cli.App) *cobra.Command {
	l := &loadCommand{App: a}
	c := &cobra.Command{
		Use:   "load URL",
		Short: "Measure a server: throughput, latency and errors under load",
		Long:  loadHelp,
		Example: "  etrun load http://127.0.0.1:8080 --model digits --clients 1,2,4,8\n" +
			"  etrun load http://127.0.0.1:8080 --rate 50,100 --arrivals random --html a.html\n" +
			"  etrun load grpc://127.0.0.1:8001 --model digits --clients 1,8\n" +
			"  etrun load https://HOST:8443 --token-file token --ca ca.pem -i x.npy\n" +
			"  etrun load unix:etrun.sock --text --prompt \"Once upon\" --max-tokens 32",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return session.Usage("%s, want one URL; see %s --help", cli.Count(len(args), "argument", "arguments"), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return l.run(c.Context(), c.Flags(), args[0]) },
	}
	flags := c.Flags()
	flags.IntSliceVar(&l.clients, "clients", nil, "numbers of clients of a closed loop, a `LIST` such as 1,2,4 (default: 1)")
	flags.Float64SliceVar(&l.rates, "rate", nil, "requests per second of an open loop, a `LIST` such as 10,20,50")
	flags.Lookup("rate").DefValue = "" // else the help has an empty list
	flags.StringVar(&l.arrivals, "arrivals", "constant",
		"intervals between requests at a rate, `KIND`: constant, or random as of many independent clients")
	flags.IntVar(&l.plan.InFlight, "in-flight", 256, "maximum requests in progress at a rate, `N`; further ones wait in the client")
	flags.DurationVar(&l.plan.Duration, "duration", 10*time.Second, "measure each level for `TIME`")
	flags.DurationVar(&l.plan.Warmup, "warmup", time.Second, "send requests for `TIME` before each level that are not counted")
	flags.Float64Var(&l.maxErrors, "max-errors", 0, "`PERCENT` of requests that may fail")
	flags.StringVar(&l.html, "html", "", "write a page with drawings to `FILE`.html")
	session.TimeLimit(flags)
	l.requests.addFlags(flags)
	l.target.addFlags(flags)
	return c
}

// Limits of the flags.
const (
	maxClients = 10_000
	maxLevels  = 64
	maxRate    = 1e6
	maxTime    = 24 * time.Hour
)

// partners are flags that mean something only with another one, or, after "!", without it.
var partners = map[string]string{
	"arrivals": "rate", "in-flight": "rate", "prompt": "text", "prompts": "text", "max-tokens": "text", "chat": "text", "ignore-eos": "text",
	"tensors": "!text", "input": "!text", "model-version": "!text",
}

// checkUsed returns an error if a flag would be ignored.
func checkUsed(flags *pflag.FlagSet) (err error) {
	isSet := func(name string) bool { f := flags.Lookup(name); return f.Changed && f.Value.String() != "false" }
	flags.Visit(func(f *pflag.Flag) {
		partner, without := strings.CutPrefix(partners[f.Name], "!")
		if partner == "" || !isSet(f.Name) || isSet(partner) != without || err != nil {
			return
		}
		if err = session.Usage("--%s needs --%s", f.Name, partner); without {
			err = session.Usage("--%s cannot be used with --%s", f.Name, partner)
		}
	})
	return err
}

// check validates the flags before the server is asked.
func (l *loadCommand) check() error {
	switch {
	case len(l.clients) > 0 && len(l.rates) > 0:
		return session.Usage("--clients and --rate are different loops; choose one")
	case len(l.clients)+len(l.rates) > maxLevels:
		return session.Usage("%d levels, want at most %d", len(l.clients)+len(l.rates), maxLevels)
	case l.plan.Duration <= 0 || l.plan.Duration > maxTime:
		return session.Usage("--duration %v, want more than 0 and at most a day", l.plan.Duration)
	case l.plan.Warmup < 0 || l.plan.Warmup > maxTime:
		return session.Usage("--warmup %v, want at least 0 and at most a day", l.plan.Warmup)
	case l.arrivals != "constant" && l.arrivals != "random":
		return session.Usage("--arrivals %q, want constant or random", l.arrivals)
	case l.plan.InFlight < 1 || l.plan.InFlight > maxClients:
		return session.Usage("--in-flight %d, want 1 to %d", l.plan.InFlight, maxClients)
	case !(l.maxErrors >= 0 && l.maxErrors <= 100):
		return session.Usage("--max-errors %v, want 0 to 100", l.maxErrors)
	}
	if len(l.clients)+len(l.rates) == 0 {
		l.clients = []int{1}
	}
	for _, n := range l.clients {
		if n < 1 || n > maxClients {
			return session.Usage("--clients %d, want 1 to %d", n, maxClients)
		}
	}
	for _, r := range l.rates {
		if most := load.MaxSamples / (l.plan.Warmup + l.plan.Duration).Seconds(); !(r > 0 && r <= min(maxRate, most)) {
			return session.Usage("--rate %v, want more than 0 and at most %.4g requests per second, for %d requests of a level",
				r, min(maxRate, most), load.MaxSamples)
		}
	}
	return l.requests.check()
}

func (l *loadCommand) run(ctx context.Context, flags *pflag.FlagSet, url string) (err error) {
	if err := cmp.Or(l.check(), checkUsed(flags)); err != nil {
		return err
	}
	if err := l.LeaveStdout(l.html); err != nil {
		return err
	}
	var page *output.File
	if l.html != "" { // before the measurement, which may take long
		if page, err = output.CreateFile(ctx, l.html); err != nil {
			return err
		}
		defer page.Close()
	}
	client, err := l.client(ctx, flags, url)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := l.checkProtocol(client); err != nil {
		return err
	}
	report := &load.Report{Schema: "etrun.load/1", Version: l.Version, URL: url, Warmup: l.plan.Warmup.Seconds(),
		Level: stats.Level, Levels: []*load.Level{}}
	sender, err := l.sender(ctx, client, report, l.Note)
	if err != nil {
		return err
	}
	l.measure(ctx, sender, report)
	return errors.Join(l.write(report, page), l.verdict(ctx, report))
}

// levels returns the plans of all levels.
func (l *loadCommand) levels(report *load.Report) (list []load.Plan) {
	report.Loop = "closed"
	for _, n := range l.clients {
		p := l.plan
		p.Clients = n
		list = append(list, p)
	}
	if len(l.rates) > 0 {
		report.Loop, report.InFlight = l.arrivals, l.plan.InFlight
	}
	for _, r := range l.rates {
		p := l.plan
		p.Rate, p.Random, p.Seed = r, l.arrivals == "random", l.seed
		list = append(list, p)
	}
	return list
}

// measure runs the levels until ctx ends.
func (l *loadCommand) measure(ctx context.Context, sender load.Sender, report *load.Report) {
	levels := l.levels(report)
	for i, p := range levels {
		if ctx.Err() != nil {
			break
		}
		what := cli.Count(p.Clients, "client", "clients")
		if p.Rate > 0 {
			what = fmt.Sprintf("%g requests per second", p.Rate)
		}
		l.Progress.During(p.Warmup+p.Duration, "level %d of %d: %s", i+1, len(levels), what)
		report.Levels = append(report.Levels, p.Run(ctx, sender))
	}
	report.Interrupted = ctx.Err() != nil
}

// verdict returns the error of the measurement: an interrupt, or more failures than are allowed.
func (l *loadCommand) verdict(ctx context.Context, report *load.Report) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failed, all := report.Failed()
	if all == 0 {
		return errors.New("no request ended within the time of a level: set a longer --duration")
	}
	if share := 100 * float64(failed) / float64(all); share > l.maxErrors {
		return fmt.Errorf("%d of %d requests failed, %.3g %%, more than %g %% (--max-errors)", failed, all, share, l.maxErrors)
	}
	return nil
}
