package load

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client sends requests to one server.
type Client struct {
	base    string // URL without a slash at its end
	token   string
	timeout time.Duration
	http    *http.Client
	rpc     bool // gRPC
}

// Options are those of a client.
type Options struct {
	// URL is http://HOST:PORT or https://HOST:PORT, each with a path before /v2 and /v1, unix:PATH, grpc://HOST:PORT or grpcs://HOST:PORT.
	URL     string
	Token   string        // bearer token, empty for none
	TLS     *tls.Config   // of https and grpcs
	Timeout time.Duration // of each request
}

// Bounds of what a server sends.
const (
	maxAnswer  = 1 << 30 // bytes of an answer, which are read and dropped
	maxHeaders = 1 << 20
	maxMessage = 64 << 10 // of an error
	maxShown   = 300      // characters of it that are kept
	maxRest    = 4 << 10  // of a stream after its end
	maxFacts   = 4 << 20  // metadata
)

// ErrURL is the class of errors in a URL.
var ErrURL = errors.New("URL")

var errForm = errors.New("want http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or unix:PATH")

// NewClient returns a client. It does not connect.
func NewClient(o Options) (*Client, error) {
	c := &Client{token: o.Token, timeout: o.Timeout}
	transport := &http.Transport{TLSClientConfig: o.TLS, DisableCompression: true, MaxIdleConnsPerHost: 1 << 20,
		MaxResponseHeaderBytes: maxHeaders, ForceAttemptHTTP2: false}
	dialer := &net.Dialer{Timeout: o.Timeout}
	transport.DialContext = dialer.DialContext
	if path, ok := strings.CutPrefix(o.URL, "unix:"); ok {
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
	} else {
		u, err := url.Parse(o.URL)
		if e, ok := errors.AsType[*url.Error](err); ok { // such as of HOST:PORT
			err = fmt.Errorf("%w; %w", e.Err, errForm)
		} else {
			err = c.useRPC(u, transport)
		}
		if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.ForceQuery || u.RawQuery+u.Fragment != "" || u.User != nil) {
			err = errForm
		}
		if err != nil {
			return nil, fmt.Errorf("%w %q: %w", ErrURL, o.URL, err)
		}
		c.base = strings.TrimRight(u.String(), "/")
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// rpcSchemes are the schemes of gRPC, and those of the HTTP/2 below.
var rpcSchemes = map[string]string{"grpc": "http", "grpcs": "https"}

// IsRPC reports whether the client uses gRPC, which has binary tensors only, and no texts.
func (c *Client) IsRPC() bool { return c.rpc }

// useRPC makes the client one of gRPC if its URL has one of its schemes. All requests share connections.
func (c *Client) useRPC(u *url.URL, transport *http.Transport) error {
	scheme, ok := rpcSchemes[u.Scheme]
	if !ok {
		return nil
	}
	if strings.Trim(u.Path, "/") != "" {
		return errors.New("want grpc://HOST:PORT or grpcs://HOST:PORT, without a path")
	}
	c.rpc, u.Scheme, u.Path = true, scheme, ""
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP2(scheme == "https")
	transport.Protocols.SetUnencryptedHTTP2(scheme == "http")
	return nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get returns what the server answers on a path, as JSON.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodGet, path, nil, into)
}

// Post sends an object and returns the answer, as JSON.
func (c *Client) Post(ctx context.Context, path string, body []byte, into any) error {
	return c.ask(ctx, http.MethodPost, path, body, into)
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte, into any) error {
	err := c.exchange(ctx, &request{method: method, path: path, body: body}, func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, maxFacts+1))
		switch {
		case err != nil:
			return err
		case len(text) > maxFacts:
			return &Failure{Bad, fmt.Errorf("more than %d bytes", maxFacts)}
		}
		if err = json.Unmarshal(text, into); err != nil {
			return &Failure{Bad, err}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s %s: %w", method, path, err)
	}
	return err
}

// request is a prepared request.
type request struct {
	method, path string
	headerLength string // of the JSON part before binary data, empty if there are none
	rpc          bool   // the body is a message of gRPC
	body         []byte
}

// exchange sends a request, and has the answer read if its status is 200. Other errors than those of ctx are *Failure.
func (c *Client) exchange(ctx context.Context, r *request, read func(io.Reader) error) error {
	return c.within(ctx, r, func(a *http.Response) error {
		if err := refused(a); err != nil {
			return err
		}
		return read(a.Body)
	})
}

// within sends a request, and has the answer read, within the time limit. Other errors than those of ctx are *Failure.
func (c *Client) within(ctx context.Context, r *request, read func(*http.Response) error) error {
	within, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %v", c.timeout))
	defer cancel()
	response, err := c.send(within, r)
	if err == nil {
		defer response.Body.Close()
		err = read(response)
	}
	if err == nil {
		return nil
	}
	return cmp.Or(context.Cause(ctx), classify(within, err))
}

func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	h, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		h.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.body != nil {
		h.Header.Set("Content-Type", "application/json")
	}
	if r.rpc {
		h.Header.Set("Content-Type", rpcType)
		h.Header.Set("Te", "trailers")
		h.Header.Set("Grpc-Timeout", strconv.FormatInt(min(max(c.timeout.Milliseconds(), 1), maxRPCTimeout), 10)+"m")
	}
	if r.headerLength != "" {
		h.Header.Set("Content-Type", "application/octet-stream")
		h.Header.Set("Inference-Header-Content-Length", r.headerLength)
	}
	return c.http.Do(h)
}

// refused returns the failure of an answer whose status is not 200.
func refused(r *http.Response) error {
	if r.StatusCode == http.StatusOK {
		return nil
	}
	class := Class(fmt.Sprintf("status %d", r.StatusCode))
	if r.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, and no time limit ends reading it
		return &Failure{class, errors.New("another protocol")}
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxMessage)) // the status is what counts
	return &Failure{class, errors.New(text(body))}
}

// text returns the begin of the message of an error: that of one of the protocols, or all of it.
func text(body []byte) string {
	return strings.TrimSpace(fmt.Sprintf("%.*s", maxShown, messageIn(body)))
}

func messageIn(body []byte) string {
	var v struct{ Error json.RawMessage }
	if json.Unmarshal(body, &v) == nil {
		var inner struct{ Message string }
		var plain string
		if json.Unmarshal(v.Error, &plain) == nil && plain != "" {
			return plain
		}
		if json.Unmarshal(v.Error, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
	}
	return string(body)
}

// classify returns the failure of an exchange.
func classify(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return &Failure{Timeout, context.Cause(ctx)}
	}
	if e, ok := errors.AsType[*url.Error](err); ok { // the URL is that of all requests
		err = e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return &Failure{Connect, err}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Failure{Connect, err}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return &Failure{Connect, err}
	}
	return &Failure{Closed, err}
}
