package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

func TestView(t *testing.T) {
	const schema = `"schema": "etrun.view/1"`
	play(t, []script{
		{name: "page", args: "view PTE/../digits/portable.pte -o graph.html", stdout: []string{"graph.html\n"}},
		{name: "times", args: "view PTE/../digits/xnnpack.pte --run --repeat 2 -o graph.html --json", stdout: []string{schema, `"nodes": 1`}, stderr: []string{"random elements"}},
		{name: "NPU", args: "view PTE/../ethosu/programs/digits.pte --lower off -o graph.html --json", stdout: []string{schema, `"nodes": 12`}},
		{name: "does not load here", args: "view PTE/external_weights.pte -o graph.html --json", stdout: []string{schema, `"load_error"`, "l.weight"}},
		{name: "equal programs", args: "view PTE/two_conds.pte PTE/two_conds.pte -o graph.html --json", stdout: []string{`"changed": 0`, `"only_here": 0`}},
		{name: "other programs", args: "view PTE/dynamic_pair.pte PTE/dynamic_pair_xnnpack.pte -o graph.html --lower off --json", stdout: []string{`"only_here": `}},
		{name: "difference", args: "view PTE/../digits/portable.pte PTE/../digits/portable.pte --difference -o graph.html", stdout: []string{"graph.html"}},
		{name: "difference of one", args: "view HERE/add.pte --difference -o graph.html", code: 2, stderr: []string{"two programs"}},
		{name: "as in the file", args: "view PTE/../digits/portable.pte -o graph.html --json", stdout: []string{`"nodes": 15,`}},
		{name: "lowered", args: "view PTE/../digits/portable.pte --lowered --lower all -o graph.html --json", stdout: []string{schema}},
		{name: "JSON without a file", args: "view HERE/add.pte --json", code: 2, stderr: []string{"-o"}},
		{name: "no file", args: "view gone.pte -o graph.html", code: 2, stderr: []string{"no such file"}, absent: []string{"graph.html"}},
		{name: "no program", args: "view noise.pte -o graph.html", code: 3, absent: []string{"graph.html"}},
		{name: "three programs", args: "view HERE/add.pte HERE/add.pte HERE/add.pte", code: 2},
	})
}

// TestForms has the words for what is drawn, and the operators that are drawn, by the flags.
func TestForms(t *testing.T) {
	program := digits(t, "portable.pte")
	const file, runs = "as in the file", "as it runs here, lowered at load (all)"
	for _, command := range []string{"view", "report"} {
		for _, tt := range []struct {
			flags, want string
			operators   bool // of the file
		}{
			{"", file, true},
			{"--lower off", file, true},
			{"--lower all", runs, false},
			{"--lowered --lower all", runs, false},
			{"--run --repeat 1 --lower all", runs, false},
			{"--run --repeat 1 --lower off", file, true},
		} {
			path := filepath.Join(t.TempDir(), "page.html")
			script{args: strings.TrimSpace(command + " " + program + " -o " + path + " " + tt.flags), stdout: []string{path}}.run(t)
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(page, []byte(tt.want+"</span></h4>")) || bytes.Contains(page, []byte(`"full":"aten::convolution.out"`)) != tt.operators {
				t.Errorf("%s %s: want %q, operators of the file %v", command, tt.flags, tt.want, tt.operators)
			}
		}
	}
}

// TestDifferencePlanted changes the weights of one node: the layers before it do not differ, and it does.
func TestDifferencePlanted(t *testing.T) {
	portable := digits(t, "portable.pte")
	changed := changedProgram(t, "../digits/xnnpack.pte", func(p *pte.Program) {
		for key, data := range p.Named {
			if len(data) == 4*32*32*9 {
				numbers := slices.Clone(tensor.View[float32](data))
				for i := range numbers {
					numbers[i] *= 1.5
				}
				p.Named[key] = tensor.BytesOf(numbers)
			}
		}
	})
	for _, tt := range []struct {
		name    string
		program string
		differ  string // the first node that differs
	}{
		{"equal", digits(t, "xnnpack.pte"), ""},
		{"one node", changed, "Conv2d"},
	} {
		path := filepath.Join(t.TempDir(), "page.html")
		script{args: "view " + portable + " " + tt.program + " --difference -o " + path, stdout: []string{path}}.run(t)
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(page), `id="graph-data">`)
		text, _, _ := strings.Cut(rest, "</script>")
		var programs []struct {
			Methods []struct {
				Nodes []struct {
					ID, Name string
					Error    *float64
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &programs); err != nil {
			t.Fatal(err)
		}
		compared, first := 0, ""
		for _, n := range programs[1].Methods[0].Nodes {
			if n.Error != nil {
				compared++
			}
			if n.Error != nil && *n.Error > 1e-3 && n.Name != "XnnpackBackend, 10 operations" && first == "" {
				first = n.Name
			}
		}
		if compared < 5 || first != tt.differ {
			t.Errorf("%s: %d nodes compared, the first that differs is %q, want %q", tt.name, compared, first, tt.differ)
		}
	}
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
