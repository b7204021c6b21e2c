// Package webpage is the page of the server: models, requests of a person, chats and figures. It uses the API of the
// server only, as any other client does, and nothing from outside.
package webpage

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed files
var files embed.FS

// Prefix is the path of the page's files; the page itself is at /.
const Prefix = "/page/"

// policy is the content security policy: files and requests of this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are the content types by extension.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

// file is a file of the page, plain and compressed.
type file struct {
	kind         string
	plain, small []byte
}

// contents returns the files by path. They are compressed when one is first asked for.
var contents = sync.OnceValue(func() map[string]file {
	all := make(map[string]file)
	list, err := fs.ReadDir(files, "files")
	if err != nil {
		panic(err) // the files are part of the executable
	}
	for _, entry := range list {
		plain, err := files.ReadFile("files/" + entry.Name())
		if err != nil {
			panic(err)
		}
		name := Prefix + entry.Name()
		if entry.Name() == "index.html" {
			name = "/"
		}
		all[name] = file{types[path.Ext(entry.Name())], plain, compress(plain)}
	}
	return all
})

// Answer answers a request for the page or one of its files.
func Answer(w http.ResponseWriter, r *http.Request) {
	f, ok := contents()[r.URL.Path]
	setHeaders(w.Header())
	if !ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		text, _ := json.Marshal(map[string]string{"error": fmt.Sprintf("no such file of the page: %.140q", r.URL.Path)}) // strings do not fail
		_, _ = w.Write(text)
		return
	}
	f.write(w, r)
}

// Serves reports whether a path is one of the page, which names no model: clients that are not authenticated may read it.
func Serves(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, Prefix))
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
}

func (f file) write(w http.ResponseWriter, r *http.Request) {
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.small
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have disconnected
	}
}

func compress(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(plain) // memory does not fail
	_ = w.Close()
	return b.Bytes()
}
