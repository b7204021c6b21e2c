package answer

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

func Fail(w http.ResponseWriter, err error) {
	status, retry, body := fault.Describe(w, err)
	if retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	JSON(w, status, body)
}

// JSON writes an object as JSON.
func JSON(w http.ResponseWriter, status int, object any) {
	text, err := json.Marshal(object)
	if err != nil { // cannot happen for objects of this package
		status = http.StatusInternalServerError
		text = []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}
