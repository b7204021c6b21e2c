package openai

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Refuse answers a request below /v1 that another part of the server refuses, as this package would.
func Refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, bodyOf(status, message))
}

func fail(w http.ResponseWriter, err error) {
	status, retry, body := describe(w, err)
	if retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	answer(w, status, body)
}

// answer writes an object as JSON.
func answer(w http.ResponseWriter, status int, object any) {
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
