// Command http is examples/daemon without a model: it sends the numbers of a request back.
// scripts/size.sh compares examples/daemon with it.
package main

import (
	"embed"
	"encoding/json"
	"expvar"
	"log"
	"net/http"
)

//go:embed main.go
var files embed.FS

var sizes = expvar.NewMap("sizes")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var x []float32
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&x)
		if err == nil {
			err = json.NewEncoder(w).Encode(x)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	text, err := files.ReadFile("main.go")
	if err != nil {
		log.Fatal(err)
	}
	sizes.Add("main.go", int64(len(text)))
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}
