// Package daemon runs a server of models: it listens, knows who may call, writes logs and
// metrics, loads models anew and ends in order.
package daemon

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// Settings are the flags of the server itself. Limits are on by default.
type Settings struct {
	Listen     []string
	Debug      string // address of profiles, empty for none
	Insecure   bool
	SocketMode string

	Cert, Key, ClientCA, TokenFile string

	Body, Busy  bytesize.Size
	BodyTimeout time.Duration
	Connections int
	Drain       time.Duration
	Control     bool

	LogFormat string
	AccessLog bool
}

// Defaults are the settings without flags.
func Defaults() Settings {
	return Settings{Listen: []string{"127.0.0.1:8080"}, SocketMode: "0600", Body: 64 << 20, Busy: 256 << 20,
		BodyTimeout: 30 * time.Second, Connections: 512, Drain: 10 * time.Second, LogFormat: "text", AccessLog: true}
}

// AddFlags adds the flags, with the settings as their defaults.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.Listen, "listen", s.Listen,
		"`ADDRESS` to listen on: HOST:PORT, unix:PATH, or systemd for sockets that systemd opened; may be repeated")
	flags.StringVar(&s.SocketMode, "socket-mode", s.SocketMode, "permissions of unix sockets, `MODE` in octal digits")
	flags.BoolVar(&s.Insecure, "insecure", s.Insecure, "listen beyond this machine without encryption, or for callers that are not known")
	flags.StringVar(&s.Cert, "tls-cert", s.Cert, "certificate chain, `FILE`.pem, read anew at SIGHUP")
	flags.StringVar(&s.Key, "tls-key", s.Key, "private key of the certificate, `FILE`.pem")
	flags.StringVar(&s.ClientCA, "client-ca", s.ClientCA, "take callers with a certificate of these authorities only, `FILE`.pem")
	flags.StringVar(&s.TokenFile, "token-file", s.TokenFile,
		"take callers with a bearer token of this `FILE` only, one a line; read anew at SIGHUP")
	flags.Var(&s.Body, "max-body", "most bytes of a request")
	flags.Var(&s.Busy, "max-busy", "most bytes of all requests that are being read or answered")
	flags.DurationVar(&s.BodyTimeout, "body-timeout", s.BodyTimeout, "`TIME` for a client to send a body, and to take an answer")
	flags.IntVar(&s.Connections, "max-connections", s.Connections, "connections at once, `N`; the longest idle one makes room for a new one")
	flags.DurationVar(&s.Drain, "drain", s.Drain, "`TIME` for requests to end after SIGTERM")
	flags.BoolVar(&s.Control, "control", s.Control, "let requests load and unload models: POST /v2/repository/models/NAME/load")
	flags.StringVar(&s.Debug, "debug", s.Debug, "serve profiles (/debug/pprof) on this `ADDRESS` of this machine")
	flags.StringVar(&s.LogFormat, "log-format", s.LogFormat, "`FORMAT` of the log on standard error: text or json")
	flags.BoolVar(&s.AccessLog, "access-log", s.AccessLog, "log each request")
}

// check reports settings that do not go together.
func (s *Settings) check() error {
	switch {
	case s.LogFormat != "text" && s.LogFormat != "json":
		return session.Usage("--log-format %q, want text or json", s.LogFormat)
	case (s.Cert == "") != (s.Key == ""):
		return session.Usage("--tls-cert and --tls-key go together")
	case s.ClientCA != "" && s.Cert == "":
		return session.Usage("--client-ca without --tls-cert: certificates of callers need TLS")
	case s.Connections < 1 || s.Body < 1 || s.Busy < 1 || s.BodyTimeout <= 0 || s.Drain < 0:
		return session.Usage("a limit below 1")
	case len(s.Listen) == 0:
		return session.Usage("no address to listen on")
	}
	return nil
}

// Model is one model with its own flags.
type Model struct {
	Name string
	Path string
	session.Options
	Limits
}

// Limits are the flags of a model.
type Limits struct {
	Methods    []string
	Instances  int
	Queue      int
	Timeout    time.Duration
	MaxBatch   int
	BatchDelay time.Duration
	Trust      string

	Sequences      int
	SequenceIdle   time.Duration
	SequenceMemory bytesize.Size

	Isolate       bool
	IsolateMemory bytesize.Size
}

// DefaultLimits are the limits without flags.
func DefaultLimits() Limits {
	return Limits{Instances: 2, Queue: 64, Timeout: 10 * time.Second, MaxBatch: 1, BatchDelay: 2 * time.Millisecond,
		Sequences: 16, SequenceIdle: time.Minute, SequenceMemory: 1 << 30}
}

// AddFlags adds the flags, with the limits as their defaults.
func (l *Limits) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&l.Methods, "method", l.Methods, "method to serve, `NAME`; may be repeated (default: all)")
	flags.IntVar(&l.Instances, "instances", l.Instances, "requests of a model that execute at once, `N`")
	flags.IntVar(&l.Queue, "queue", l.Queue, "requests of a model that wait, `N`; further ones get 429")
	flags.DurationVar(&l.Timeout, "timeout", l.Timeout, "`TIME` for a request to be read, wait and execute, then it gets 504")
	flags.IntVar(&l.MaxBatch, "max-batch", l.MaxBatch, "join requests into executes of up to `N` rows, where the first dimension varies")
	flags.DurationVar(&l.BatchDelay, "batch-delay", l.BatchDelay, "`TIME` that a batch waits for further requests")
	flags.IntVar(&l.Sequences, "sequences", l.Sequences, "sequences of a model that keep state at once, `N`")
	flags.DurationVar(&l.SequenceIdle, "sequence-idle", l.SequenceIdle, "`TIME` after which an unused sequence ends")
	flags.Var(&l.SequenceMemory, "sequence-memory", "most memory of all sequences of a model")
	flags.BoolVar(&l.Isolate, "isolate", l.Isolate,
		"run the model in a process of its own, which has no rights and is replaced when it crashes")
	flags.Var(&l.IsolateMemory, "isolate-memory", "with --isolate: most memory that the process allocates")
	flags.StringVar(&l.Trust, "trust", l.Trust, "take only files with a signature FILE.minisig of this public key, a `KEY` or its file")
}

func (l *Limits) check() error {
	if l.Instances < 1 || l.Queue < 0 || l.Timeout <= 0 || l.MaxBatch < 1 || l.BatchDelay < 0 || l.Sequences < 1 ||
		l.SequenceIdle <= 0 || l.SequenceMemory < 1 {
		return session.Usage("a limit of a model below 1")
	}
	if l.IsolateMemory != 0 && !l.Isolate {
		return session.Usage("--isolate-memory without --isolate")
	}
	return nil
}
