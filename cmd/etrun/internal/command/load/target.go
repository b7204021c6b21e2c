package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/openfile"
)

// target are the flags of the connection.
type target struct {
	tokenFile, ca, cert, key string
	timeout                  time.Duration
}

func (t *target) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&t.timeout, "request-timeout", time.Minute, "`TIME` limit of a request, after which it has failed")
	flags.StringVar(&t.tokenFile, "token-file", "", "send the first bearer token of this `FILE`")
	flags.StringVar(&t.ca, "ca", "", "trust certificates of these authorities, `FILE`.pem (default: those of the system)")
	flags.StringVar(&t.cert, "tls-cert", "", "certificate of the client, `FILE`.pem")
	flags.StringVar(&t.key, "tls-key", "", "private key of this certificate, `FILE`.pem")
}

// maxSecrets bounds files of tokens, keys and certificates.
const maxSecrets = 1 << 20

// client returns a client of the server.
func (t *target) client(ctx context.Context, flags *pflag.FlagSet, url string) (*load.Client, error) {
	if t.timeout <= 0 {
		return nil, session.Usage("--request-timeout %v, want more than 0", t.timeout)
	}
	for _, name := range []string{"ca", "tls-cert", "tls-key"} {
		scheme, _, _ := strings.Cut(strings.ToLower(url), ":")
		if flags.Changed(name) && scheme != "https" && scheme != "grpcs" {
			return nil, session.Usage("--%s: %s is without TLS, want https://HOST:PORT or grpcs://HOST:PORT", name, url)
		}
	}
	o := load.Options{URL: url, Timeout: t.timeout, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	var err error
	if t.tokenFile != "" {
		if o.Token, err = readToken(ctx, t.tokenFile); err != nil {
			return nil, err
		}
	}
	if t.ca != "" {
		text, err := openfile.ReadFile(ctx, t.ca, openfile.Rules{Limit: maxSecrets})
		if err != nil {
			return nil, err
		}
		if o.TLS.RootCAs = x509.NewCertPool(); !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return nil, session.Usage("--ca %s: no PEM certificate", t.ca)
		}
	}
	if o.TLS.Certificates, err = t.pair(ctx); err != nil {
		return nil, err
	}
	c, err := load.NewClient(o)
	if err != nil {
		return nil, session.Usage("%w", err)
	}
	return c, nil
}

// pair returns the certificate of the client, if there is one.
func (t *target) pair(ctx context.Context) ([]tls.Certificate, error) {
	if t.cert == "" && t.key == "" {
		return nil, nil
	}
	if t.cert == "" || t.key == "" {
		return nil, session.Usage("--tls-cert and --tls-key must be given together")
	}
	chain, err := openfile.ReadFile(ctx, t.cert, openfile.Rules{Limit: maxSecrets})
	if err != nil {
		return nil, err
	}
	private, err := openfile.ReadFile(ctx, t.key, openfile.Rules{Limit: maxSecrets})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(chain, private)
	if err != nil {
		return nil, session.Usage("%s, %s: %w", t.cert, t.key, err)
	}
	return []tls.Certificate{pair}, nil
}

// readToken returns the first token of a file, which has one per line.
func readToken(ctx context.Context, path string) (string, error) {
	text, err := openfile.ReadFile(ctx, path, openfile.Rules{Limit: maxSecrets})
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(text) {
		if token := bytes.TrimSpace(line); len(token) > 0 && token[0] != '#' {
			if bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return "", session.Usage("%s: the token has characters that no header can have", path)
			}
			return string(token), nil
		}
	}
	return "", session.Usage("%s: no token", path)
}
