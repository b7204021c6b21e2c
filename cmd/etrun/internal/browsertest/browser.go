//go:build unix

// Package browsertest drives pages in a headless Chromium, for tests.
package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
)

// process is a headless Chromium, controlled over a pipe with the DevTools protocol. It serves all tests of a package, one at a time.
type process struct {
	cmd     *exec.Cmd
	to      *os.File
	from    *bufio.Reader
	pipe    *os.File // of from
	profile string   // a folder
	id      int      // of the last call
}

var running *process

// Browser is a test's use of the process: a page with its own storage.
type Browser struct {
	*process
	t                *testing.T
	session, context string
}

// Main is the tests of a package. Its Run stops the browser after them.
type Main struct{ *testing.M }

// Run runs the tests and returns the exit code.
func (m Main) Run() int {
	code := m.M.Run()
	if p := running; p != nil {
		p.to.Close()
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // with its helpers
		_ = p.cmd.Wait()
		p.pipe.Close()
		_ = os.RemoveAll(p.profile)
	}
	return code
}

// Step is something done in a page, and what is then seen.
// Its strings are a name, an expression to evaluate or none, an expression to look at, and its value.
type Step [4]string

// Open shows a page, a path or an address, in a window of a width, and starts Chromium for the first one. Without Chromium the test is
// skipped. A package that calls it runs its tests by [Main].
func Open(t *testing.T, url string, width int) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser")
	}
	if running == nil {
		running = start(t)
	}
	_ = running.pipe.SetReadDeadline(time.Now().Add(5 * time.Minute))
	b := &Browser{process: running, t: t}
	t.Cleanup(b.leave)
	b.Visit(url, width)
	return b
}

func start(t *testing.T) *process {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium in PATH")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "page-test-") // which helper processes may still write to at the end
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion", "--disable-dev-shm-usage", "--remote-debugging-pipe",
		"--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", // a microphone that beeps
		"--user-data-dir="+profile, "about:blank")
	c.ExtraFiles = []*os.File{theirs, theirOut}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirOut.Close()
	return &process{cmd: c, to: to, from: bufio.NewReader(from), pipe: from, profile: profile}
}

// leave closes the page.
func (b *Browser) leave() {
	b.session = ""
	b.Call("Target.disposeBrowserContext", map[string]any{"browserContextId": b.context}, nil)
}

// Visit leaves the page for another one, which sees nothing that the first has stored.
func (b *Browser) Visit(url string, width int) {
	b.t.Helper()
	if strings.HasPrefix(url, "/") {
		url = "file://" + url
	}
	if b.context != "" {
		b.leave()
	}
	var target struct{ BrowserContextID, TargetID, SessionID string }
	b.Call("Target.createBrowserContext", nil, &target)
	b.Call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": target.BrowserContextID}, &target)
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.context, b.session = target.BrowserContextID, target.SessionID
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.Call("Page.navigate", map[string]any{"url": url}, nil)
	b.Play([]Step{{"the page is there", "", "document.readyState + ' ' + document.querySelectorAll('main').length", "complete 1"}})
}

// Call calls a method of the protocol and waits for the response.
func (b *Browser) Call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.id++
	message := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		line, err := b.from.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &answer); err != nil {
			b.t.Fatal(err)
		}
		if answer.ID != b.id {
			continue // an event
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// Eval evaluates an expression in the page and returns its value as text.
func (b *Browser) Eval(expression string) string {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(answer.Result.Value)
}

// Play does steps, one after the other; what is seen may take seconds.
func (b *Browser) Play(steps []Step) {
	b.t.Helper()
	for _, s := range steps {
		what, do, see, want := s[0], s[1], s[2], s[3]
		if do != "" {
			b.Eval(do)
		}
		got := b.Eval(see)
		later := "new Promise(r => setTimeout(r, 20)).then(() => " + see + ")" // more often would keep the browser busy
		if got != want && !await.Until(func() bool { got = b.Eval(later); return got == want }) {
			b.t.Fatalf("%s: got %s, want %s", what, got, want)
		}
	}
}

// At returns a position in an element, in parts of its size, after it has been scrolled into view.
func (b *Browser) At(selector string, x, y float64) (left, top float64) {
	b.t.Helper()
	box := fmt.Sprintf("(() => { const e = document.querySelector(%q); e.scrollIntoView({ block: 'center' }); const r = e.getBoundingClientRect();"+
		" return (r.left + r.width * %g) + ' ' + (r.top + r.height * %g) })()", selector, x, y)
	if _, err := fmt.Sscan(b.Eval(box), &left, &top); err != nil {
		b.t.Fatal(err)
	}
	return left, top
}

// Drag presses the mouse at the first of positions in an element, moves it over the others and releases it.
func (b *Browser) Drag(selector string, positions ...[2]float64) {
	b.t.Helper()
	var x, y float64
	for i, p := range positions {
		x, y = b.At(selector, p[0], p[1])
		kind := "mouseMoved"
		if i == 0 {
			kind = "mousePressed"
		}
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
	b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseReleased", "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
}
