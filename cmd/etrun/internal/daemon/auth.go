package daemon

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/webpage"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc"
	"github.com/etrun-go/etrun/serve/openai"
)

// maxSecrets bounds files of keys, certificates and tokens.
const maxSecrets = 1 << 20

// minToken is the minimum length of a token.
const minToken = 16

// secrets are the server's certificate and the credentials of clients, as read from the files. A
// reload replaces all of them.
type secrets struct {
	certificate *tls.Certificate
	clients     *x509.CertPool
	tokens      [][sha256.Size]byte
}

// differences names what is not the same as in others.
func (s *secrets) differences(others *secrets) string {
	var list []string
	if !slices.Equal(s.tokens, others.tokens) {
		list = append(list, "tokens")
	}
	if s.certificate != nil && !slices.EqualFunc(s.certificate.Certificate, others.certificate.Certificate, bytes.Equal) {
		list = append(list, "certificate")
	}
	if s.clients != nil && !s.clients.Equal(others.clients) {
		list = append(list, "client CA")
	}
	return cmp.Or(strings.Join(list, ", "), "nothing")
}

// secretStore holds the current secrets.
type secretStore struct {
	settings *Settings
	now      atomic.Pointer[secrets]
}

// read reads the files. If that fails the current secrets stay in use.
func (k *secretStore) read(ctx context.Context) error {
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
			return session.Usage("%s: no PEM certificate", s.ClientCA)
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

// tls returns the configuration of listeners for a protocol, nil without a certificate. Clients without a
// certificate are refused by guard, which allows them health checks.
func (k *secretStore) tls(protocol string) *tls.Config {
	if k.settings.Cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := k.now.Load()
		c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*now.certificate}, NextProtos: []string{protocol}}
		if now.clients != nil {
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, now.clients
		}
		return c, nil
	}}
}

// known reports whether clients must authenticate.
func (k *secretStore) known() bool { return k.settings.TokenFile != "" || k.settings.ClientCA != "" }

// readyPath answers whether the server is ready; healthPath is its name in servers of language models.
const (
	livePath    = "/v2/health/live"
	readyPath   = "/v2/health/ready"
	healthPath  = "/health"
	metricsPath = "/metrics"
)

// open are the paths without authentication, for probes.
var open = pathSet([]string{livePath, readyPath, healthPath}, grpc.Open)

// pathSet is the set of the paths of some lists.
func pathSet(lists ...[]string) map[string]bool {
	set := make(map[string]bool)
	for _, path := range slices.Concat(lists...) {
		set[path] = true
	}
	return set
}

// guard refuses clients that are not authenticated. They get the page, which asks for a token: it names no model.
func (k *secretStore) guard(next http.Handler, conns *connections) http.Handler {
	unknown := refusal(http.StatusUnauthorized, "not authorized")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch client, ok := k.now.Load().admit(r); {
		case ok:
			next.ServeHTTP(w, r.WithContext(serve.WithClient(r.Context(), client)))
		case open[r.URL.Path]:
			answerProbe(w, r.WithContext(serve.WithClient(r.Context(), serve.Client{Refused: true})), next, conns)
		case !k.settings.NoPage && webpage.Serves(r):
			conns.answered(r)
			next.ServeHTTP(w, r)
		default:
			conns.answered(r)
			w.Header().Set("WWW-Authenticate", `Bearer realm="etrun"`)
			unknown.ServeHTTP(w, r)
		}
	})
}

var probing = refusal(http.StatusServiceUnavailable, "too many health checks at the same time on a connection")

// answerProbe answers a health check of a client that is not authenticated. One over gRPC lasts until its message has arrived.
func answerProbe(w http.ResponseWriter, r *http.Request, next http.Handler, conns *connections) {
	if !grpc.Serves(r) {
		next.ServeHTTP(w, r)
	} else if !conns.aside(r, func() { next.ServeHTTP(w, r) }) {
		probing.ServeHTTP(w, r)
	}
}

func refusal(code int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if grpc.Serves(r) {
			grpc.Refuse(w, r, code, text)
			return
		}
		if openai.Serves(r.URL.Path) { // clients read errors of that protocol
			openai.Refuse(w, r, code, text)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":%q}`, text)
	})
}

// admit authenticates a client: by certificate and token, as far as each is required. Without either it is known by its address.
func (s *secrets) admit(r *http.Request) (c serve.Client, ok bool) {
	digest := sha256.New()
	if s.clients != nil {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return c, false
		}
		digest.Write(r.TLS.PeerCertificates[0].Raw)
	}
	if s.tokens != nil {
		token, ok := s.token(r)
		if !ok {
			return c, false
		}
		digest.Write(token[:])
	}
	if s.clients == nil && s.tokens == nil {
		c.Address, _, _ = net.SplitHostPort(r.RemoteAddr) // empty for unix sockets
		return c, true
	}
	c.Credential = string(digest.Sum(nil))
	return c, true
}

// token returns the digest of a request's token, if it is one of the file.
func (s *secrets) token(r *http.Request) (digest [sha256.Size]byte, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return digest, false
	}
	digest = sha256.Sum256([]byte(token))
	found := 0
	for i := range s.tokens { // compare all of them, in constant time
		found |= subtle.ConstantTimeCompare(digest[:], s.tokens[i][:])
	}
	return digest, found == 1
}
