// Command daemon serves a program over HTTP: it accepts numbers at localhost:8080 and
// returns those of the model. /debug/vars has the seconds per operator.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"expvar"
	"log"
	"net/http"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

//go:embed model.pte model.ptd
var files embed.FS

var seconds = expvar.NewMap("seconds") // by operator

// clip is the custom operator of the model.
func clip(_ *kernels.Ctx, a kernels.Args) error {
	for i, x := range tensor.Data[float32](a.Tensor(0)) {
		tensor.Data[float32](a.Tensor(1))[i] = min(max(x, 0), 1)
	}
	return nil
}

type daemon struct{ pool *etrun.Pool }

func open() (daemon, error) {
	prog, err := etrun.OpenSource(context.Background(), etrun.FS(files, "model.pte"), etrun.WithData(etrun.FS(files, "model.ptd")),
		etrun.WithOperators(kernels.Op{Schema: "demo::clip.out(Tensor self, *, Tensor(a!) out)", Func: clip}),
		etrun.WithObserver(trace.Func{Kinds: trace.Instructions, Do: func(e *trace.Event) { seconds.AddFloat(e.Name, e.Duration().Seconds()) }}))
	if err != nil {
		return daemon{}, err
	}
	pool, err := prog.NewPool("forward", 2, etrun.WithQueue(16))
	return daemon{pool}, err
}

// ServeHTTP replies within a second, including the wait for an instance.
func (d daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	var x []float32
	code, err := http.StatusBadRequest, json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&x)
	if err == nil {
		code, err = http.StatusServiceUnavailable, d.pool.Do(ctx, func(m *etrun.Method) error {
			y, err := etrun.Run[float32](ctx, m, x) // y is valid until this function returns
			if err != nil {
				return err
			}
			return json.NewEncoder(w).Encode(y)
		})
	}
	if errors.Is(err, etrun.ErrInput) { // other classes tell more
		code = http.StatusBadRequest
	}
	if err != nil {
		http.Error(w, err.Error(), code)
	}
}

func main() {
	d, err := open()
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", d)
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}
