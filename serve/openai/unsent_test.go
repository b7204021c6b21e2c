package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// slowWriter is the writer of a client that reads only a number of bytes, and of the log. Bytes fail when they are flushed.
type slowWriter struct {
	*httptest.ResponseRecorder
	most  int
	fault error
}

func (w *slowWriter) FlushError() error {
	if w.Body.Len() > w.most {
		return fmt.Errorf("write to a client: %w", os.ErrDeadlineExceeded)
	}
	return nil
}

// Flush hides that of the recorder.
func (w *slowWriter) Flush() { _ = w.FlushError() }

func (w *slowWriter) Fault(err error) { w.fault = err }

// The log has the reason why an answer was not sent, wherever it was cut, as that of a client that has left.
func TestUnsent(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for path, body := range map[string]string{
		asCompletion: `{"prompt":"x","max_tokens":6,"temperature":0`, asResponse: `{"input":"x","max_output_tokens":6,"temperature":0`,
		asChat: `{"messages":[{"role":"user","content":"x"}],"max_tokens":6,"temperature":0`,
	} {
		for _, end := range []string{"}", `,"stream":true}`} {
			send := func(most int) *slowWriter {
				w := &slowWriter{httptest.NewRecorder(), most, nil}
				p.http.Config.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body+end)))
				return w
			}
			all := send(1 << 20)
			if all.fault != nil || all.Code != http.StatusOK {
				t.Fatalf("%s %s: %d %v", path, end, all.Code, all.fault)
			}
			for _, most := range []int{0, all.Body.Len() / 2, all.Body.Len() - 1} {
				w := send(most)
				if !errors.Is(w.fault, context.Canceled) || !strings.Contains(w.fault.Error(), os.ErrDeadlineExceeded.Error()) {
					t.Errorf("%s %s: after %d bytes the log has %v", path, end, most, w.fault)
				}
			}
		}
	}
	all := p.server.NewReservation()
	defer all.Release()
	must(t, all.Grow(p.server.BusyBytes())) // nothing is counted
}
