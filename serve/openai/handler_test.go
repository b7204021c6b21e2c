package openai

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
)

// deadlineWriter counts the time limits of its writes.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	limits int
}

func (w *deadlineWriter) SetWriteDeadline(time.Time) error {
	w.limits++
	return nil
}

// A request that waited for its form has time for the answer that it is refused.
func TestTimeToRefuse(t *testing.T) {
	server, err := serve.New(serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	h := &handler{server: server}
	w := &deadlineWriter{httptest.NewRecorder(), 0}
	h.run(w, httptest.NewRequest(http.MethodPost, "/v1/completions", nil), &requests.Chat{}, nil, server.NewReservation(), fault.Refused("prompt", "no"))
	if w.Code != http.StatusBadRequest || w.limits == 0 {
		t.Errorf("got %d after %d limits", w.Code, w.limits)
	}
}
