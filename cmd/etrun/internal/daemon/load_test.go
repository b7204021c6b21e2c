package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// loadTime is the duration of load tests: a second, or ETRUN_SERVE_LOAD.
func loadTime(t testing.TB) time.Duration {
	text := os.Getenv("ETRUN_SERVE_LOAD")
	if text == "" {
		return time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// loadModel is the model of load tests: the digits, or the file ETRUN_SERVE_MODEL.
func loadModel() string {
	if path := os.Getenv("ETRUN_SERVE_MODEL"); path != "" {
		return path
	}
	return digits
}

// exchange is a request and its expected outputs.
type exchange struct {
	body   []byte
	header string
	want   [][]byte
}

// exchanges returns requests of random inputs, and the library's outputs for them.
func exchanges(t testing.TB, path string, n int, binaryData bool) []exchange {
	t.Helper()
	prog, err := etrun.OpenSource(t.Context(), etrun.File(path), etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	m, err := prog.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	list := make([]exchange, n)
	for i := range list {
		list[i] = newExchange(t, m, uint64(i), binaryData)
	}
	return list
}

func newExchange(t testing.TB, m *etrun.Method, seed uint64, binaryData bool) exchange {
	t.Helper()
	r := rand.New(rand.NewPCG(7, seed))
	request := oip.Request{ID: strconv.FormatUint(seed, 10)}
	if binaryData {
		for i := range m.NumOutputs() {
			request.Outputs = append(request.Outputs, oip.Output{Name: fmt.Sprintf("output_%d", i), Parameters: oip.Parameters{"binary_data": true}})
		}
	}
	for i := range m.Meta().Inputs {
		x := m.Meta().Inputs[i].NewTensor()
		for rest := x.Data; len(rest) > 0; rest = rest[4:] {
			tensor.Put(rest, tensor.Float32, r.Float64())
		}
		if err := m.SetInput(i, x); err != nil {
			t.Fatal(err)
		}
		request.Inputs = append(request.Inputs, oip.Tensor{Name: fmt.Sprintf("input_%d", i), Datatype: "FP32", Shape: x.Sizes, Data: x.Data, Binary: binaryData})
	}
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	var e exchange
	for i := range m.NumOutputs() {
		data, err := etrun.Get[float32](m, i)
		if err != nil {
			t.Fatal(err)
		}
		e.want = append(e.want, bytes.Clone(tensor.BytesOf(data)))
	}
	body, n, err := request.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		e.header = strconv.Itoa(n)
	}
	e.body = body
	return e
}

// send sends the request, checks that the answer belongs to it, and returns the status.
func (e *exchange) send(ctx context.Context, client *http.Client, url string) (code int, err error) {
	request, err := http.NewRequestWithContext(ctx, "POST", url+"/v2/models/m/infer", bytes.NewReader(e.body))
	if err != nil {
		return 0, err
	}
	if e.header != "" {
		request.Header.Set(oip.HeaderLength, e.header)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, err := text.ReadFrom(answer.Body)
		return answer.StatusCode, err
	}
	r, err := oip.ReadResponse(answer.Body, answer.Header.Get(oip.HeaderLength), oip.Limits{Header: 1 << 20, Body: 1 << 26, Tensors: 1 << 26, Inputs: 64})
	if err != nil {
		return 0, err
	}
	for i, want := range e.want {
		if !bytes.Equal(r.Outputs[i].Data, want) {
			return 0, fmt.Errorf("request %s got another answer in output %d", r.ID, i)
		}
	}
	return http.StatusOK, nil
}

// tally counts the outcomes of requests.
type tally struct {
	mu    sync.Mutex
	codes map[int]int
	took  map[time.Duration]int // accepted requests by rounded time: a list of all would be taken for a leak
}

func (l *tally) add(code int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.codes[code]++
	if code == http.StatusOK {
		l.took[took.Round(100*time.Microsecond)]++
	}
}

// percentile returns a percentile of the accepted requests' times.
func (l *tally) percentile(p int) time.Duration {
	rest := (l.codes[http.StatusOK] - 1) * p / 100
	for _, took := range slices.Sorted(maps.Keys(l.took)) {
		if rest -= l.took[took]; rest < 0 {
			return took
		}
	}
	return 0
}

// backOff is how long a refused client waits. It is shorter than the server requests, so that the
// queue stays full.
const backOff = 50 * time.Millisecond

// storm runs clients that send one request after the other until the time is over, and calls
// between meanwhile. Statuses other than 200, 429 and 504 must be allowed.
func storm(t *testing.T, r *running, clients int, list []exchange, d time.Duration, between func(), allowed ...int) *tally {
	t.Helper()
	result := &tally{codes: make(map[int]int), took: make(map[time.Duration]int)}
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for k := c; time.Now().Before(end); k++ {
				begun := time.Now()
				code, err := list[k%len(list)].send(t.Context(), r.client, r.url)
				if err != nil || !slices.Contains(append(allowed, 200, 429, 504), code) {
					t.Errorf("client %d: %d, %v", c, code, err)
					return
				}
				if result.add(code, time.Since(begun)); code == 429 || code == 503 {
					time.Sleep(backOff)
				}
			}
		})
	}
	between()
	all.Wait()
	return result
}

// residentBytes returns the memory of this process.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(text)
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestOverload runs twice as many clients as the model admits: every answer belongs to its request,
// other requests get 429 or 504, accepted ones are in time, and memory does not grow.
func TestOverload(t *testing.T) {
	const clients = 32
	m := model("m", loadModel())
	m.Instances, m.Queue, m.Timeout = 2, clients/2-2, 2*time.Second
	r := start(t, func(d *Daemon) { d.AccessLog = false }, m)
	list := exchanges(t, m.Path, 8, true)
	storm(t, r, clients, list, loadTime(t)/4, func() {}) // allocates buffers and connections
	before, goroutines := settled(t), runtime.NumGoroutine()
	result := storm(t, r, clients, list, loadTime(t), func() {})
	after := settled(t)
	t.Logf("%v: codes %v, p50 %v, p99 %v of %v, %d MB resident before and %d MB after", loadTime(t), result.codes, result.percentile(50),
		result.percentile(99), m.Timeout, before>>20, after>>20)
	if result.codes[200] == 0 || result.percentile(99) > m.Timeout {
		t.Errorf("codes %v, p99 %v, want at most %v", result.codes, result.percentile(99), m.Timeout)
	}
	if after > before+before/10+16<<20 {
		t.Errorf("memory went from %d to %d bytes", before, after)
	}
	r.client.CloseIdleConnections()
	r.wait("goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// settled returns the memory after garbage collection.
func settled(t *testing.T) int64 {
	runtime.GC()
	runtime.GC()
	return residentBytes(t)
}

// TestReloadUnderLoad loads ten times during overload, every third time a broken file: only refused
// requests fail.
func TestReloadUnderLoad(t *testing.T) {
	good, err := os.ReadFile(loadModel())
	if err != nil {
		t.Fatal(err)
	}
	m := model("m", filepath.Join(t.TempDir(), "m.pte"))
	m.Instances, m.Queue = 2, 14
	replace := func(b []byte) {
		if err := errors.Join(os.WriteFile(m.Path+".new", b, 0o600), os.Rename(m.Path+".new", m.Path)); err != nil {
			t.Error(err)
		}
	}
	replace(good)
	r := start(t, func(d *Daemon) { d.AccessLog = false }, m)
	list := exchanges(t, m.Path, 8, true)
	const loads = 10
	var failed atomic.Int64
	result := storm(t, r, 32, list, loadTime(t), func() {
		for i := range loads {
			if replace(good); i%3 == 1 {
				replace(good[:len(good)/2])
			}
			if err := r.server.LoadAll(t.Context()); err != nil {
				failed.Add(1)
			}
			time.Sleep(loadTime(t) / (2 * loads))
		}
	})
	t.Logf("%v with %d loads: codes %v, p99 %v", loadTime(t), loads, result.codes, result.percentile(99))
	if failed.Load() != 3 || result.codes[200] == 0 {
		t.Errorf("%d loads failed, want 3; codes %v", failed.Load(), result.codes)
	}
}

// TestEndUnderLoad shuts down during overload: accepted requests are answered, and the daemon ends
// in time.
func TestEndUnderLoad(t *testing.T) {
	m := model("m", loadModel())
	m.Instances, m.Queue = 2, 14
	r := start(t, func(d *Daemon) { d.AccessLog = false }, m)
	list := exchanges(t, m.Path, 4, true)
	var answered, cut atomic.Int64
	ended := make(chan struct{})
	var all sync.WaitGroup
	for c := range 32 {
		all.Go(func() {
			for {
				code, err := list[c%len(list)].send(t.Context(), r.client, r.url)
				select {
				case <-ended:
					return
				default:
				}
				if code == 200 {
					answered.Add(1)
				} else if err != nil {
					cut.Add(1) // refused connections, once the listener is closed
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	r.wait("requests are answered", func() bool { return answered.Load() >= 100 })
	begun := time.Now()
	r.cancel()
	err := <-r.ended
	close(ended)
	r.ended <- nil
	all.Wait()
	if err != nil || time.Since(begun) > r.Drain || answered.Load() == 0 {
		t.Errorf("%v after %v, %d answers", err, time.Since(begun), answered.Load())
	}
}
