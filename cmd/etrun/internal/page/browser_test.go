//go:build unix

package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// browser is a headless Chromium, controlled over a pipe with the DevTools protocol.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	id      int
}

// openBrowser starts Chromium with a page. Without Chromium the test is skipped.
func openBrowser(t *testing.T, path string, width int) *browser {
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
	c := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
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
	b := &browser{t: t, to: to, from: bufio.NewReader(from)}
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for range 3000 {
		if b.eval("document.readyState + ' ' + document.querySelectorAll('main').length") == "complete 1" {
			return b
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the page does not come")
	return nil
}

// call calls a method of the protocol and waits for the response.
func (b *browser) call(method string, params map[string]any, result any) {
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

// eval evaluates an expression in the page and returns its value as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(answer.Result.Value)
}
