package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/internal/await"
)

func TestView(t *testing.T) {
	const json = `"schema": "etrun.view/1"`
	play(t, []script{
		{name: "page", args: "view PTE/../digits/portable.pte -o graph.html", stdout: []string{"graph.html\n"}},
		{name: "times", args: "view PTE/../digits/xnnpack.pte --run --repeat 2 -o graph.html --json", stdout: []string{json, `"nodes": 1`}, stderr: []string{"random elements"}},
		{name: "NPU", args: "view PTE/../ethosu/programs/digits.pte --lower off -o graph.html --json", stdout: []string{json, `"nodes": 12`}},
		{name: "does not load here", args: "view PTE/external_weights.pte -o graph.html --json", stdout: []string{json, `"load_error"`, "l.weight"}},
		{name: "equal programs", args: "view PTE/two_conds.pte PTE/two_conds.pte -o graph.html --json", stdout: []string{`"changed": 0`, `"only_here": 0`}},
		{name: "other programs", args: "view PTE/dynamic_pair.pte PTE/dynamic_pair_xnnpack.pte -o graph.html --lower off --json", stdout: []string{`"only_here": `}},
		{name: "difference", args: "view PTE/../digits/portable.pte PTE/../digits/portable.pte --difference -o graph.html", stdout: []string{"graph.html"}},
		{name: "difference of one", args: "view HERE/add.pte --difference -o graph.html", code: 2, stderr: []string{"two programs"}},
		{name: "JSON without a file", args: "view HERE/add.pte --json", code: 2, stderr: []string{"-o"}},
		{name: "no file", args: "view gone.pte -o graph.html", code: 2, stderr: []string{"no such file"}, absent: []string{"graph.html"}},
		{name: "no program", args: "view noise.pte -o graph.html", code: 3, absent: []string{"graph.html"}},
		{name: "three programs", args: "view HERE/add.pte HERE/add.pte HERE/add.pte", code: 2},
	})
}

// lockedBuffer is standard output that a test reads while a command writes.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/[A-Z0-9]+`)

// TestViewOnThisMachine asks the server for the page, as browsers and others do.
func TestViewOnThisMachine(t *testing.T) {
	program := digits(t, "portable.pte")
	inScriptFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &lockedBuffer{}
	a := &app{App: cli.App{In: strings.NewReader(""), Out: out, Notes: io.Discard}}
	c := newRoot(a)
	c.SetArgs([]string{"view", program, "--no-open"})
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	url := ""
	await.True(t, "there is an address", func() bool { url = address.FindString(out.String()); return url != "" })
	for _, tt := range []struct {
		name, host, origin, site, path string
		code                           int
	}{
		{name: "browser", site: "none", code: 200},
		{name: "curl", code: 200},
		{name: "the page itself", origin: "SAME", site: "same-origin", code: 200},
		{name: "other name", host: "evil.example", code: 421},
		{name: "other origin", origin: "http://evil.example", code: 403},
		{name: "file", origin: "null", code: 403},
		{name: "other site", site: "cross-site", code: 403},
		{name: "other path", path: "/", code: 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.host != "" {
			r.Host = tt.host
		}
		if tt.origin != "" {
			r.Header.Set("Origin", strings.Replace(tt.origin, "SAME", url[:strings.LastIndex(url, "/")], 1))
		}
		if tt.site != "" {
			r.Header.Set("Sec-Fetch-Site", tt.site)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != tt.code || tt.code == 200 != bytes.Contains(body, []byte("graph-data")) {
			t.Errorf("%s: status %d with %d bytes, want %d", tt.name, answer.StatusCode, len(body), tt.code)
		}
		if p := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") {
			t.Errorf("%s: policy %q", tt.name, p)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}
