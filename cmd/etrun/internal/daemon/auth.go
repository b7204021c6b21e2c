package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/openfile"
)

// maxSecrets bounds files of keys, certificates and tokens.
const maxSecrets = 1 << 20

// minToken is the least length of a token.
const minToken = 16

// secrets are what the files say about who the server is and who may call. They are
// replaced whole when the files are read anew.
type secrets struct {
	certificate *tls.Certificate
	clients     *x509.CertPool
	tokens      [][sha256.Size]byte
}

// keeper has the secrets that hold now.
type keeper struct {
	settings *Settings
	now      atomic.Pointer[secrets]
}

// read reads the files. Where it fails the secrets stay as they were.
func (k *keeper) read(ctx context.Context) error {
	s, next := k.settings, &secrets{}
	if s.Cert != "" {
		certificate, err := readPair(ctx, s.Cert, s.Key)
		if err != nil {
			return err
		}
		next.certificate = certificate
	}
	if s.ClientCA != "" {
		text, err := openfile.ReadFile(ctx, s.ClientCA, openfile.Rules{Limit: maxSecrets})
		if err != nil {
			return err
		}
		if next.clients = x509.NewCertPool(); !next.clients.AppendCertsFromPEM(text) {
			return session.Usage("%s: no certificate in PEM", s.ClientCA)
		}
	}
	if s.TokenFile != "" {
		tokens, err := readTokens(ctx, s.TokenFile)
		if err != nil {
			return err
		}
		next.tokens = tokens
	}
	k.now.Store(next)
	return nil
}

func readPair(ctx context.Context, cert, key string) (*tls.Certificate, error) {
	chain, err := openfile.ReadFile(ctx, cert, openfile.Rules{Limit: maxSecrets})
	if err != nil {
		return nil, err
	}
	private, err := openfile.ReadFile(ctx, key, openfile.Rules{Limit: maxSecrets})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(chain, private)
	if err != nil {
		return nil, session.Usage("%s, %s: %w", cert, key, err)
	}
	return &pair, nil
}

func readTokens(ctx context.Context, path string) (tokens [][sha256.Size]byte, err error) {
	text, err := openfile.ReadFile(ctx, path, openfile.Rules{Limit: maxSecrets})
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		token := bytes.TrimSpace(line)
		if len(token) == 0 || token[0] == '#' {
			continue
		}
		if len(token) < minToken {
			return nil, session.Usage("%s: a token of %d bytes, want at least %d", path, len(token), minToken)
		}
		tokens = append(tokens, sha256.Sum256(token))
	}
	if len(tokens) == 0 {
		return nil, session.Usage("%s: no token", path)
	}
	return tokens, nil
}

// tls is the configuration of listeners, nil without a certificate. Callers without a
// certificate are refused by guard, which lets them ask for the server's health.
func (k *keeper) tls() *tls.Config {
	if k.settings.Cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := k.now.Load()
		c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*now.certificate}, NextProtos: []string{"http/1.1"}}
		if now.clients != nil {
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, now.clients
		}
		return c, nil
	}}
}

// known reports that callers must show who they are.
func (k *keeper) known() bool { return k.settings.TokenFile != "" || k.settings.ClientCA != "" }

// open are the paths for everybody: those of probes, which cannot show who they are.
var open = map[string]bool{"/v2/health/live": true, "/v2/health/ready": true}

// guard refuses callers that are not known, and pages of browsers from elsewhere.
func (k *keeper) guard(next http.Handler) http.Handler {
	browsers := http.NewCrossOriginProtection()
	browsers.SetDenyHandler(refusal(http.StatusForbidden, "a request of another origin's page"))
	unknown := refusal(http.StatusUnauthorized, "not authorised")
	inside := browsers.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open[r.URL.Path] && !k.now.Load().admit(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="etrun"`)
			unknown.ServeHTTP(w, r)
			return
		}
		inside.ServeHTTP(w, r)
	})
}

func refusal(code int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":%q}`, text)
	})
}

// admit decides on a caller: each of certificate and token that is wanted must be there.
func (s *secrets) admit(r *http.Request) bool {
	if s.clients != nil && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return false
	}
	if s.tokens == nil {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	got, found := sha256.Sum256([]byte(token)), 0
	for i := range s.tokens { // all of them, so that time tells nothing
		found |= subtle.ConstantTimeCompare(got[:], s.tokens[i][:])
	}
	return found == 1
}
