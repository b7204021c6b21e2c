// Command classify is an inference server with an extra endpoint: POST /classify accepts
// images of digits, returns the digit and counts it. The models are also served with the
// Open Inference Protocol, and metrics under /metrics.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/exif"
	"github.com/etrun-go/etrun/runtime/metrics"
	"github.com/etrun-go/etrun/serve"
)

func main() {
	folder := flag.String("data", "testdata", "folder of the programs")
	flag.Parse()
	h, err := newServer(context.Background(), *folder)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", h))
}

// size is the size of the model's images, maxBytes the maximum size of a file.
const (
	size     = 8
	maxBytes = 1 << 20
)

// classifier classifies images with its own pool.
type classifier struct {
	pool   *etrun.Pool
	digits *prometheus.CounterVec // images by digit
}

// newServer serves a model for images, and one with state per sequence.
func newServer(ctx context.Context, folder string) (http.Handler, error) {
	models := metrics.New(metrics.Options{Backends: all.Backends()})
	open := func(name, file string) func(context.Context) (*etrun.Program, error) {
		return func(ctx context.Context) (*etrun.Program, error) {
			return etrun.OpenSource(ctx, etrun.File(filepath.Join(folder, file)),
				etrun.WithDelegates(all.Backends()...), etrun.WithObserver(models.Model(name, "")))
		}
	}
	s, err := serve.New(serve.Options{}, serve.Config{Name: "digits", Open: open("digits", "digits/xnnpack.pte")},
		serve.Config{Name: "sums", Open: open("sums", "pte/initial_state.pte")})
	if err != nil {
		return nil, err
	}
	if err := s.LoadAll(ctx); err != nil {
		return nil, err
	}
	program, err := open("pictures", "digits/xnnpack.pte")(ctx)
	if err != nil {
		return nil, err
	}
	counts := prometheus.CounterOpts{Name: "classified_total", Help: "Images by digit."}
	c := &classifier{digits: prometheus.NewCounterVec(counts, []string{"digit"})}
	if c.pool, err = program.NewPool("", 2, etrun.WithQueue(16)); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(models, c.digits)
	mux := http.NewServeMux()
	mux.Handle("/v2/", s)
	mux.Handle("POST /classify", c)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}

// ServeHTTP classifies a PNG image of a digit, white on black.
func (c *classifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil || picture.Bounds().Dx() != size || picture.Bounds().Dy() != size {
		http.Error(w, "want a PNG image of 8 by 8 pixels", http.StatusBadRequest)
		return
	}
	digit := 0
	err = c.pool.Do(r.Context(), func(m *etrun.Method) error {
		scores, err := etrun.Run[float32](r.Context(), m, pixels(picture, exif.Of(file)))
		if err == nil {
			digit = slices.Index(scores, slices.Max(scores))
		}
		return err
	})
	if err != nil { // its class tells client errors from server errors
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	c.digits.WithLabelValues(strconv.Itoa(digit)).Inc()
	_ = json.NewEncoder(w).Encode(map[string]int{"digit": digit}) // the client may be gone
}

// pixels returns the model's input: brightness from 0 to 1, row by row, turned upright.
func pixels(picture image.Image, o exif.Orientation) []float32 {
	list := make([]float32, size*size)
	at := picture.Bounds().Min
	for y := range size {
		for x := range size {
			gray := color.Gray16Model.Convert(picture.At(at.X+x, at.Y+y)).(color.Gray16)
			col, row := o.Place(size, size, x, y)
			list[row*size+col] = float32(gray.Y) / 0xffff
		}
	}
	return list
}
