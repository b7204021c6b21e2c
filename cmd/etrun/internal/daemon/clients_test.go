package daemon

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestClients checks that the tokens that a client has computed are reused for that client only: the one with the same certificate and
// token, as far as the server asks for them, or else with the same address.
func TestClients(t *testing.T) {
	ours := newAuthority(t)
	cert, key, first := ours.pair(t)
	_, _, second := ours.pair(t)
	const alice, mallory = "alice-alice-alice", "mallory-mallory-mallory"
	tokens := file(t, "tokens", alice+"\n"+mallory+"\n")
	ca := file(t, "ca.pem", ours.pem)
	type client struct {
		token       string
		certificate *tls.Certificate
		address     string
	}
	for name, c := range map[string]struct {
		change        func(*Daemon)
		victim, other client
	}{
		"tokens":    {func(d *Daemon) { d.TokenFile = tokens }, client{token: alice}, client{token: mallory}},
		"addresses": {func(*Daemon) {}, client{}, client{address: "127.0.0.2"}},
		"certificates": {func(d *Daemon) { d.Cert, d.Key, d.ClientCA = cert, key, ca }, client{certificate: &first},
			client{certificate: &second}},
		"certificates of one token": {func(d *Daemon) { d.Cert, d.Key, d.ClientCA, d.TokenFile = cert, key, ca, tokens },
			client{token: alice, certificate: &first}, client{token: alice, certificate: &second}},
		"tokens of one certificate": {func(d *Daemon) { d.Cert, d.Key, d.ClientCA, d.TokenFile = cert, key, ca, tokens },
			client{token: alice, certificate: &first}, client{token: mallory, certificate: &first}},
	} {
		t.Run(name, func(t *testing.T) {
			if l, err := net.Listen("tcp", net.JoinHostPort(c.other.address, "0")); err != nil {
				t.Skipf("this machine has no second local address: %v", err)
			} else {
				_ = l.Close()
			}
			lm := model("lm", languageModel)
			lm.Tokenizer = byteTokenizer
			r := start(t, c.change, lm)
			cached := func(from client) int {
				t.Helper()
				transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: time.Minute}).DialContext}
				if from.address != "" {
					transport.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from.address)}}).DialContext
				}
				url := "http://" + r.address()
				if r.Cert != "" {
					url = "https://" + r.address()
					transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
				}
				if from.certificate != nil {
					transport.TLSClientConfig.Certificates = []tls.Certificate{*from.certificate}
				}
				request, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/completions",
					strings.NewReader(`{"prompt":"My PIN is 4071","max_tokens":1}`))
				if err != nil {
					t.Fatal(err)
				}
				if from.token != "" {
					request.Header.Set("Authorization", "Bearer "+from.token)
				}
				answer, err := (&http.Client{Transport: transport}).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				var got struct {
					Usage struct {
						Details *struct {
							Cached int `json:"cached_tokens"`
						} `json:"prompt_tokens_details"`
					}
				}
				if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || got.Usage.Details == nil {
					t.Fatalf("status %d: %v", answer.StatusCode, err)
				}
				return got.Usage.Details.Cached
			}
			for i, from := range []client{c.victim, c.other, c.victim, c.other} {
				if n := cached(from); (n > 0) != (i > 1) {
					t.Errorf("request %d: %d tokens are cached, want some: %v", i, n, i > 1)
				}
			}
		})
	}
}
