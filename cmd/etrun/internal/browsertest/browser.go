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

// Browser is a headless Chromium, controlled over a pipe with the DevTools protocol.
type Browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	id      int
}

// Step is something done in a page, and what is then seen.
// Its strings are a name, an expression to evaluate or none, an expression to look at, and its value.
type Step [4]string

// Open starts Chromium with a page, a path or an address, in a window of a width. Without Chromium the test is skipped.
func Open(t *testing.T, url string, width int) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser")
	}
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
	t.Cleanup(func() {
		to.Close()
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // with its helpers
		_ = c.Wait()
		from.Close()
		_ = os.RemoveAll(profile)
	})
	_ = from.SetReadDeadline(time.Now().Add(5 * time.Minute))
	b := &Browser{t: t, to: to, from: bufio.NewReader(from)}
	b.Visit(url, width)
	return b
}

// Visit leaves the page for another one, which sees nothing that the first has stored. It is faster than another browser.
func (b *Browser) Visit(url string, width int) {
	b.t.Helper()
	if strings.HasPrefix(url, "/") {
		url = "file://" + url
	}
	b.session = ""
	var target struct{ BrowserContextID, TargetID, SessionID string }
	b.Call("Target.createBrowserContext", nil, &target)
	b.Call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": target.BrowserContextID}, &target)
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.Call("Page.navigate", map[string]any{"url": url}, nil)
	await.True(b.t, "the page is there", func() bool {
		return b.Eval("document.readyState + ' ' + document.querySelectorAll('main').length") == "complete 1"
	})
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
		got := ""
		if !await.Until(func() bool { got = b.Eval(see); return got == want }) {
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
