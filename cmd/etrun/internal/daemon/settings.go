// Package daemon runs a server of models: it listens, authenticates clients, writes logs and
// metrics, reloads models, and shuts down gracefully.
package daemon

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// Settings are the flags of the server. Limits apply by default.
type Settings struct {
	Listen     []string
	Host       []string // names of the server, in addition to those of Listen
	CORS       []string // origins of other pages that may use the server
	GRPC       []string // addresses of gRPC
	Metrics    string   // address of metrics alone, empty for none
	Debug      string   // address of profiles, empty for none
	Insecure   bool
	SocketMode string

	Cert, Key, ClientCA, TokenFile string

	Body        bytesize.Size // 0 if not given: see maxBody
	Busy        bytesize.Size
	BodyTimeout time.Duration
	Connections int
	Drain       time.Duration
	Control     bool

	Folder   string        // of models, empty for none
	Interval time.Duration // between two looks for changes in it, 0 for none
	Memory   bytesize.Size // of all models, 0 for no limit
	Strict   bool          // ready only if all models are loaded

	LogFormat string
	AccessLog bool
	ProbeLog  bool // also of health checks and scrapes
	NoPage    bool // no page at /

	MetricsDetail bool // histograms of delegate calls and of the stages of loads
}

// Defaults returns the default settings.
func Defaults() Settings {
	return Settings{Listen: []string{"127.0.0.1:8080"}, SocketMode: "0600", Busy: 256 << 20,
		BodyTimeout: 30 * time.Second, Connections: 512, Drain: 10 * time.Second, Interval: 2 * time.Second, LogFormat: "text", AccessLog: true}
}

// AddFlags adds the flags. Their defaults are the current values.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	flags.Var(session.Texts(&s.Listen), listenFlag,
		"`ADDRESS` to listen on: HOST:PORT, unix:PATH, or systemd for sockets that systemd opened; may be repeated")
	flags.Var(session.Texts(&s.GRPC), grpcFlag, "serve gRPC on this `ADDRESS`, HOST:PORT or unix:PATH; may be repeated")
	flags.StringVar(&s.Metrics, metricsFlag, s.Metrics,
		"serve /metrics on this `ADDRESS`, too, HOST:PORT or unix:PATH; a local one needs no authentication")
	flags.Var(session.Texts(&s.Host), "host",
		"accept requests for this `NAME` of the server, and for IP addresses and localhost, but for no other name; may be repeated "+
			"(default: any name, but none on local addresses without authentication)")
	flags.Var(session.Texts(&s.CORS), "cors", "let pages of this `ORIGIN`, such as https://app.example, use the server; may be repeated")
	flags.StringVar(&s.SocketMode, "socket-mode", s.SocketMode, "permissions of unix sockets, `MODE` in octal digits")
	flags.BoolVar(&s.Insecure, "insecure", s.Insecure, "listen to other machines without TLS or authentication")
	flags.StringVar(&s.Cert, "tls-cert", s.Cert, "certificate chain, `FILE`.pem, reloaded at SIGHUP")
	flags.StringVar(&s.Key, "tls-key", s.Key, "private key of the certificate, `FILE`.pem")
	flags.StringVar(&s.ClientCA, "client-ca", s.ClientCA, "require client certificates of these authorities, `FILE`.pem")
	flags.StringVar(&s.TokenFile, "token-file", s.TokenFile,
		"require a bearer token of this `FILE`, one per line; reloaded at SIGHUP")
	flags.Var(&s.Body, "max-body", "maximum size of a request (default 64 MiB, or --max-busy if that is less)")
	notZero(flags, "max-body", &s.Body)
	flags.Var(&s.Busy, "max-busy", "maximum size of all requests in progress")
	flags.DurationVar(&s.BodyTimeout, "body-timeout", s.BodyTimeout, "`TIME` limit for a client to send a body, and to receive an answer")
	flags.IntVar(&s.Connections, "max-connections", s.Connections,
		"maximum number of connections with a request, `N`; a further one replaces the longest idle one")
	flags.DurationVar(&s.Drain, "drain", s.Drain, "`TIME` limit for requests in progress after SIGTERM")
	flags.BoolVar(&s.Control, "control", s.Control, "allow requests to load and unload models: POST /v2/repository/models/NAME/load")
	flags.StringVar(&s.Folder, folderFlag, s.Folder, "serve the models in this `FOLDER`, as they come and go: files NAME.pte, or folders NAME with "+
		"model.pte or versions 1, 2, … and options in model.json")
	flags.DurationVar(&s.Interval, "models-interval", s.Interval, "`TIME` between two looks for changes in the folder of --models; 0: at SIGHUP only")
	flags.Var(&s.Memory, "models-memory", "maximum memory of all models; those that were not used for the longest time are unloaded for others")
	flags.BoolVar(&s.Strict, "strict-readiness", s.Strict, "be ready only if all models are loaded, also those that are unloaded on purpose")
	flags.StringVar(&s.Debug, debugFlag, s.Debug, "serve profiles (/debug/pprof) on this local `ADDRESS`")
	flags.BoolVar(&s.NoPage, "no-page", s.NoPage, "do not serve the page at / for browsers")
	flags.StringVar(&s.LogFormat, "log-format", s.LogFormat, "`FORMAT` of the log on standard error: text or json")
	flags.BoolVar(&s.AccessLog, "access-log", s.AccessLog, "log every request, but for health checks and scrapes that succeed")
	flags.BoolVar(&s.MetricsDetail, "metrics-detail", s.MetricsDetail,
		"metrics with finer histograms, and histograms of delegate calls and of each stage of loads: some 370 series of a model instead of 45")
	flags.BoolVar(&s.ProbeLog, "access-log-probes", s.ProbeLog, "log health checks and scrapes, too")
}

// folderFlag is the flag of the folder of models; the others are those of addresses.
const (
	folderFlag  = "models"
	listenFlag  = "listen"
	grpcFlag    = "grpc-address"
	metricsFlag = "metrics-address"
	debugFlag   = "debug"
)

// check reports conflicting settings.
func (s *Settings) check() error {
	switch {
	case s.LogFormat != "text" && s.LogFormat != "json":
		return session.Usage("--log-format %q, want text or json", s.LogFormat)
	case (s.Cert == "") != (s.Key == ""):
		return session.Usage("--tls-cert and --tls-key must be given together")
	case s.ClientCA != "" && s.Cert == "":
		return session.Usage("--client-ca without --tls-cert: client certificates require TLS")
	case s.Busy > 0 && s.Busy < s.Body:
		return session.Usage("--max-busy %v is less than --max-body %v: requests between them could never be accepted; raise the one or "+
			"lower the other", &s.Busy, &s.Body)
	case len(s.Listen) == 0:
		return session.Usage("no address to listen on")
	}
	return cmp.Or(
		atLeast("max-connections", s.Connections, 1), atLeast("max-body", int64(s.Body), 0), atLeast("max-busy", int64(s.Busy), 1),
		atLeast("body-timeout", s.BodyTimeout, 1), atLeast("drain", s.Drain, 0), atLeast("models-interval", s.Interval, 0),
		atLeast("models-memory", int64(s.Memory), 0))
}

// defaultBody is the maximum size of a request without --max-body.
const defaultBody bytesize.Size = 64 << 20

// maxBody returns the maximum size of a request. Without --max-body no request is refused for ever because others could be in progress.
func (s *Settings) maxBody() bytesize.Size {
	if s.Body > 0 {
		return s.Body
	}
	return min(defaultBody, s.Busy)
}

// given is the value of a flag that cannot be set to 0, which stands for one that is not given.
type given[T ~int | ~int64] struct {
	pflag.Value
	of *T
}

// notZero makes a flag of a number one that cannot be set to 0.
func notZero[T ~int | ~int64](flags *pflag.FlagSet, name string, of *T) {
	f := flags.Lookup(name)
	f.Value, f.DefValue = given[T]{f.Value, of}, ""
}

// Set implements pflag.Value.
func (g given[T]) Set(text string) error {
	old := *g.of
	err := g.Value.Set(text)
	if err == nil && *g.of < 1 {
		*g.of, err = old, errors.New("want more than 0")
	}
	return err
}

// String implements pflag.Value: empty for a flag that is not given.
func (g given[T]) String() string {
	if *g.of == 0 {
		return ""
	}
	return g.Value.String()
}

// atLeast returns an error if the value of a flag is below its minimum.
func atLeast[T int | int64 | time.Duration](flag string, value, minimum T) error {
	if value < minimum {
		return session.Usage("--%s %v, want at least %v", flag, value, minimum)
	}
	return nil
}

// Model is one model and its flags.
type Model struct {
	Name    string
	Path    string
	Version string // number of its version, empty if it has none
	session.Options
	Limits

	described string // the file in a folder with its options, empty if there is none
	folder    string // that folder, empty for other models
}

// Limits are the flags of a model.
type Limits struct {
	Methods    []string
	Instances  int // 0 if not given: the default of the kind of model
	Queue      int
	Timeout    time.Duration // 0 if not given: the default of the kind of model
	MaxBatch   int
	BatchDelay time.Duration
	Trust      string

	Load string // when it is loaded, see loads; empty for the default
	Idle time.Duration

	Sequences      int
	SequenceIdle   time.Duration
	SequenceMemory bytesize.Size

	Isolate       bool
	IsolateMemory bytesize.Size

	Tokenizer  string // the model generates text if this is set
	Template   string
	Texts      int
	TextMemory bytesize.Size

	session.Embedding // the model computes vectors of texts
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{Queue: 64, MaxBatch: 1, BatchDelay: 2 * time.Millisecond,
		Sequences: 16, SequenceIdle: time.Minute, SequenceMemory: 1 << 30, Texts: 4, TextMemory: 1 << 30}
}

// AddFlags adds the flags. Their defaults are the current values.
func (l *Limits) AddFlags(flags *pflag.FlagSet) {
	flags.Var(session.Texts(&l.Methods), "method", "method to serve, `NAME`; may be repeated (default: all)")
	flags.IntVar(&l.Instances, "instances", l.Instances, "requests of a model that run concurrently, `N` (default 2, of a language model 8)")
	notZero(flags, "instances", &l.Instances)
	flags.IntVar(&l.Queue, "queue", l.Queue, "requests of a model that may wait, `N`; further ones get 429")
	flags.DurationVar(&l.Timeout, "timeout", l.Timeout,
		"`TIME` limit for reading, waiting and running a request, then it gets 504 (default 10s, of a language model 10m)")
	notZero(flags, "timeout", &l.Timeout)
	flags.IntVar(&l.MaxBatch, "max-batch", l.MaxBatch, "batch requests into runs of up to `N` rows; the first dimension must vary")
	flags.DurationVar(&l.BatchDelay, "batch-delay", l.BatchDelay, "`TIME` that a batch waits for more requests")
	flags.IntVar(&l.Sequences, "sequences", l.Sequences, "maximum number of open sequences of a model, `N`")
	flags.DurationVar(&l.SequenceIdle, "sequence-idle", l.SequenceIdle, "`TIME` after which an idle sequence ends")
	flags.Var(&l.SequenceMemory, "sequence-memory", "maximum memory of all sequences of a model")
	flags.BoolVar(&l.Isolate, "isolate", l.Isolate,
		"run each model in a separate unprivileged process, which is restarted when it crashes")
	flags.Var(&l.IsolateMemory, "isolate-memory", "with --isolate: maximum memory that the process allocates, and shares with the server")
	flags.StringVar(&l.Tokenizer, "tokenizer", l.Tokenizer,
		"answer requests of OpenAI's API (/v1) with a language model, whose tokenizer is in `FILE`, or its folder with the chat template beside it, or with a program of speech and its folder; --timeout limits the time to the first token")
	flags.StringVar(&l.Template, "template", l.Template, "chat template of the language model, `NAME` or FILE, such as chat_template.jinja (default: that of the folder, or found by the tokenizer's control tokens)")
	l.Embedding.AddFlags(flags)
	flags.IntVar(&l.Texts, "texts", l.Texts, "texts `N` whose computed tokens a language model keeps for prompts with the same beginning")
	flags.Var(&l.TextMemory, "text-memory", "maximum memory of these texts of a model, without its weights")
	flags.StringVar(&l.Load, "load", l.Load, "load models at the `TIME` start, or on demand of a request (default: demand with --models-memory or --idle)")
	flags.DurationVar(&l.Idle, "idle", l.Idle, "unload models that are loaded on demand after this `TIME` without requests; 0: never")
	flags.StringVar(&l.Trust, "trust", l.Trust, "accept only files, of the model and beside it, with a signature FILE.minisig of this minisign public `KEY`, or its file")
}

// Requests that run concurrently without --instances. Texts decode together, and each has memory only while it is generated.
const (
	inferInstances = 2
	textInstances  = 8
)

// instances returns the number of requests that run concurrently.
func (l *Limits) instances() int {
	switch {
	case l.Instances > 0:
		return l.Instances
	case l.Tokenizer != "":
		return textInstances
	}
	return inferInstances
}

// Time limits of requests without --timeout. Texts wait for those before them, which take long, and most clients of
// language models wait as long as that.
const (
	inferTimeout = 10 * time.Second
	textTimeout  = 10 * time.Minute
)

// timeout returns the time limit of a request.
func (l *Limits) timeout() time.Duration {
	switch {
	case l.Timeout > 0:
		return l.Timeout
	case l.Tokenizer != "":
		return textTimeout
	}
	return inferTimeout
}

// Values of --load.
const (
	atStart  = "start"
	onDemand = "demand"
)

// isOnDemand reports whether requests load the model; limited whether the memory of all models is.
func (l *Limits) isOnDemand(limited bool) bool {
	return l.Load == onDemand || l.Load == "" && (limited || l.Idle > 0)
}

func (l *Limits) check() error {
	switch {
	case l.Load != "" && l.Load != atStart && l.Load != onDemand:
		return session.Usage("--load %q, want %s or %s", l.Load, atStart, onDemand)
	case l.Load == atStart && l.Idle > 0:
		return session.Usage("--idle with --load %s: a model that was unloaded is loaded on demand", atStart)
	case l.Tokenizer != "" && l.Isolate:
		return session.Usage("--tokenizer with --isolate: language models run in the server's process")
	case l.Tokenizer == "" && l.Template != "":
		return session.Usage("--template without --tokenizer")
	case l.Tokenizer == "" && (l.Pooling != "" || l.Normalize != ""):
		return session.Usage("--pooling or --normalize without --tokenizer")
	case l.Pooling != "" && l.Template != "":
		return session.Usage("--template with --pooling: a model that computes vectors of texts has no chats")
	case l.IsolateMemory != 0 && !l.Isolate:
		return session.Usage("--isolate-memory without --isolate")
	case l.Instances > maxInstances:
		return session.Usage("--instances %d, want at most %d", l.Instances, maxInstances)
	case l.IsolateMemory != 0 && l.IsolateMemory < minIsolated:
		return session.Usage("--isolate-memory %s, want at least %s", bytesize.Format(int64(l.IsolateMemory)), bytesize.Format(minIsolated))
	}
	return cmp.Or(
		l.Embedding.Check(), atLeast("instances", l.Instances, 0), atLeast("queue", l.Queue, 0), atLeast("timeout", l.Timeout, 0),
		atLeast("texts", l.Texts, 1), atLeast("text-memory", int64(l.TextMemory), 1),
		atLeast("max-batch", l.MaxBatch, 1), atLeast("batch-delay", l.BatchDelay, 0), atLeast("sequences", l.Sequences, 1), atLeast("idle", l.Idle, 0),
		atLeast("sequence-idle", l.SequenceIdle, 1), atLeast("sequence-memory", int64(l.SequenceMemory), 1))
}

// maxInstances bounds the memory of a model, of which all instances are loaded before the first request.
const maxInstances = 1024

// minIsolated is the memory in bytes below which a process cannot start.
const minIsolated = 16 << 20
