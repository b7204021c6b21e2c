package serve_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// postRaw sends a body without a JSON part.
func postRaw(s http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	return ask(s, "POST", path, string(body), oip.HeaderLength, "0")
}

// TestRawRequests compares the answers to requests of one input's bytes alone with those to requests that name it.
func TestRawRequests(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "digits", Open: program("digits/portable.pte")},
		serve.Config{Name: "dynamic", Open: program("pte/dynamic_pair.pte")}, serve.Config{Name: "two", Open: program("pte/two_methods.pte")})
	image := oip.Tensor{Name: "input_0", Datatype: "FP32", Shape: []int{1, 1, 8, 8}, Data: tensor.BytesOf(digits(t)[:64]), Binary: true}
	for _, c := range []struct {
		path string
		in   oip.Tensor
	}{
		{"/v2/models/digits/infer", image},
		{"/v2/models/digits/versions/forward/infer", image},
		{"/v2/models/two/versions/push/infer", oip.Tensor{Name: "input_0", Datatype: "FP32", Shape: []int{4}, Data: image.Data[:16], Binary: true}},
	} {
		named, w := infer(t, s, c.path, c.in)
		if named == nil {
			t.Fatal(c.path, w.Body)
		}
		w = postRaw(s, c.path, c.in.Data)
		raw, err := oip.ReadResponse(w.Body, w.Header().Get(oip.HeaderLength), wideLimits)
		if w.Code != http.StatusOK || err != nil {
			t.Fatal(c.path, w.Code, err, w.Body)
		}
		for i := range raw.Outputs {
			if !raw.Outputs[i].Binary || !bytes.Equal(raw.Outputs[i].Data, named.Outputs[i].Data) {
				t.Errorf("%s: %+v, want %+v", c.path, raw.Outputs[i], named.Outputs[i])
			}
		}
	}
}

// TestWrongRawRequests checks that bodies that do not determine the inputs are refused.
func TestWrongRawRequests(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "digits", Open: program("digits/portable.pte")},
		serve.Config{Name: "dynamic", Open: program("pte/dynamic_pair.pte")}, serve.Config{Name: "two", Open: program("pte/two_methods.pte")})
	for _, c := range []struct {
		path string
		size int
		want string
	}{
		{"/v2/models/digits/infer", 0, "body of 0 bytes"},
		{"/v2/models/digits/infer", 255, "body of 255 bytes"},
		{"/v2/models/digits/infer", 257, "body of 257 bytes"},
		{"/v2/models/dynamic/infer", 64, "2 inputs"},
		{"/v2/models/two/infer", 16, "push"},
		{"/v2/models/two/versions/none/infer", 16, "method"},
	} {
		w := postRaw(s, c.path, make([]byte, c.size))
		if w.Code != http.StatusBadRequest && w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s, %d bytes: %d %s, want %q", c.path, c.size, w.Code, w.Body, c.want)
		}
	}
	r := httptest.NewRequest("POST", "/v2/models/digits/infer", bytes.NewReader(make([]byte, 256)))
	r.Header.Set(oip.HeaderLength, "0")
	r.ContentLength = -1
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Content-Length") {
		t.Errorf("unknown length: %d %s", w.Code, w.Body)
	}
}
