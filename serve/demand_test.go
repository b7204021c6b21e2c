package serve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
)

// ledger counts the memory of open programs.
type ledger struct{ now, most atomic.Int64 }

func (l *ledger) add(n int64) {
	now := l.now.Add(n)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
}

// summand is a program that adds its number to the input.
type summand struct {
	number float32
	ledger *ledger
	bytes  int64
	closed atomic.Bool
}

func (p *summand) MethodNames() []string { return []string{"forward"} }

func (p *summand) Meta(string) (*etrun.MethodMeta, error) {
	one := []etrun.ValueMeta{{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: []int{1}, Dynamism: tensor.Static}}
	return &etrun.MethodMeta{Name: "forward", Inputs: one, Outputs: one}, nil
}

func (p *summand) Pool(context.Context, string, int) (serve.Runner, error) { return adding{p}, nil }

func (p *summand) Instance(context.Context, string, serve.Instance) (serve.Instance, error) {
	return adding{p}, nil
}

func (p *summand) Down() error { return nil }

func (p *summand) Close() error {
	if p.closed.Swap(true) {
		return errors.New("closed twice")
	}
	p.ledger.add(-p.bytes)
	return nil
}

type adding struct{ *summand }

func (r adding) Run(_ context.Context, inputs []tensor.Value, _ []int, take func(int, *tensor.Value)) error {
	if r.closed.Load() {
		return errors.New("the program is closed")
	}
	sum := tensor.New(tensor.Float32, 1)
	tensor.Data[float32](sum)[0] = tensor.Data[float32](inputs[0].Tensor)[0] + r.number
	v := tensor.TensorValue(sum)
	take(0, &v)
	return nil
}

func (adding) Close() error { return nil }
func (adding) Reset() error { return nil }
func (adding) Bytes() int64 { return 1 }

// summing returns the configuration of a model that adds a number, and is loaded on demand.
func summing(name string, number float32, bytes int64, l *ledger) serve.Config {
	return serve.Config{Name: name, OnDemand: true, Timeout: time.Minute, Size: func() int64 { return bytes / 2 },
		Memory: func() int64 { return bytes },
		Start: func(context.Context) (serve.Program, error) {
			if number < 0 {
				return nil, errors.New("broken")
			}
			l.add(bytes)
			return &summand{number: number, ledger: l, bytes: bytes}, nil
		}}
}

// addTo asks a model for x plus its number.
func addTo(t *testing.T, s *serve.Server, name string, x float32) (y float32, code int, text string) {
	r, w := infer(t, s, "/v2/models/"+name+"/infer", floats("input_0", []int{1}, x))
	if r == nil {
		return 0, w.Code, w.Body.String()
	}
	return tensor.View[float32](r.Outputs[0].Data)[0], w.Code, ""
}

// TestOnDemand loads a model by a request, unloads it when it is idle, and loads it again.
func TestOnDemand(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var l ledger
		c := summing("m", 5, 100, &l)
		c.Idle, c.Version = 20*time.Millisecond, "7"
		var why atomic.Value
		c.Unloaded = func(reason string) { why.Store(reason) }
		s := server(t, serve.Options{Strict: strict, Control: true}, c)
		if s.Ready() == strict || ask(s, "GET", "/v2/models/m/ready", "").Code != 404 {
			t.Errorf("strict %v: ready %v before the load", strict, s.Ready())
		}
		for _, path := range []string{"/v2/models/m", "/v2/models/m/config", "/v2/models/m/versions/7"} {
			if w := ask(s, "GET", path, ""); w.Code != 200 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		for range 3 {
			if y, code, text := addTo(t, s, "m", 1); y != 6 || code != 200 {
				t.Errorf("%v, %d, %s", y, code, text)
			}
			await.True(t, "an idle model is unloaded", func() bool { return l.now.Load() == 0 && why.Load() == "idle" })
		}
		if w := ask(s, "POST", "/v2/repository/models/m/load", ""); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		_ = ask(s, "POST", "/v2/repository/models/m/unload", "") // it may be idle already
		if _, code, text := addTo(t, s, "m", 1); code != 404 {
			t.Errorf("after an unload by a request: %d %s", code, text)
		}
		if w := ask(s, "POST", "/v2/repository/models/m/load", ""); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		if y, code, text := addTo(t, s, "m", 2); y != 7 || code != 200 {
			t.Errorf("loaded again: %v, %d, %s", y, code, text)
		}
	}
}

// TestOpenSequences keeps models with open sequences, and says so to those that do not fit beside them.
func TestOpenSequences(t *testing.T) {
	var l ledger
	a, b := summing("a", 1, 100, &l), summing("b", 2, 100, &l)
	a.Idle = time.Millisecond
	s := server(t, serve.Options{MemoryBytes: 150}, a, b, summing("large", 3, 200, &l))
	step := func(flags string) int {
		return ask(s, "POST", "/v2/models/a/infer", `{"parameters":{"sequence_id":1`+flags+
			`},"inputs":[{"name":"input_0","shape":[1],"datatype":"FP32","data":[1]}]}`).Code
	}
	if code := step(`,"sequence_start":true`); code != 200 {
		t.Fatal(code)
	}
	if _, code, text := addTo(t, s, "b", 1); code != 503 || !strings.Contains(text, "must stay") {
		t.Errorf("no memory: %d %s", code, text)
	}
	time.Sleep(5 * time.Millisecond)
	if code := step(`,"sequence_end":true`); code != 200 {
		t.Errorf("the sequence was lost: %d", code)
	}
	if y, code, text := addTo(t, s, "b", 1); y != 3 || code != 200 {
		t.Errorf("after the sequence: %v %d %s", y, code, text)
	}
	for range 2 { // the second time its memory is known
		if _, code, text := addTo(t, s, "large", 1); code != 503 {
			t.Errorf("a model larger than the limit: %d %s", code, text)
		}
	}
	if n := s.MemoryBytes(); n > 150 {
		t.Errorf("%d bytes of 150", n)
	}
}

// TestFailedDemand fails requests at once for some time after a load that failed.
func TestFailedDemand(t *testing.T) {
	var l ledger
	var loads atomic.Int64
	c := summing("m", -1, 100, &l)
	c.Loaded = func(error) { loads.Add(1) }
	s := server(t, serve.Options{MemoryBytes: 1000}, c)
	for range 20 {
		if _, code, text := addTo(t, s, "m", 1); code != 503 || strings.Contains(text, "broken") {
			t.Errorf("%d %s", code, text)
		}
	}
	if n := loads.Load(); n < 1 || n > 5 {
		t.Errorf("%d loads", n)
	}
	if !s.Ready() || s.MemoryBytes() != 0 {
		t.Errorf("ready %v, %d bytes", s.Ready(), s.MemoryBytes())
	}
	if err := s.Put(t.Context(), summing("m", 1, 100, &l)); err != nil {
		t.Error(err)
	}
	if y, code, text := addTo(t, s, "m", 1); y != 2 {
		t.Errorf("after a replacement: %v %d %s", y, code, text)
	}
}

// TestReplacedDemand replaces a model while a request waits for its load, which fails: the request gets the answer of the new one.
func TestReplacedDemand(t *testing.T) {
	var l ledger
	gate := make(chan struct{})
	c := summing("m", 1, 100, &l)
	c.Start = func(context.Context) (serve.Program, error) {
		<-gate
		return nil, errors.New("broken")
	}
	s := server(t, serve.Options{}, c)
	old := s.Model("m")
	var both sync.WaitGroup
	both.Go(func() {
		if y, code, text := addTo(t, s, "m", 1); y != 3 || code != 200 {
			t.Errorf("%v, %d %s", y, code, text)
		}
	})
	await.True(t, "the request waits", func() bool { return old.State() == serve.Loading })
	if err := s.Put(t.Context(), summing("m", 2, 100, &l)); err != nil {
		t.Error(err)
	}
	close(gate)
	both.Wait()
}

// churnTime is how long TestMemoryLimit sends requests.
const churnTime = "ETRUN_SERVE_CHURN"

// TestMemoryLimit sends requests to a hundred models, of which twenty fit into memory, while some are added, replaced, broken and
// removed: each answer is that of one of the programs that the model had during the request, and memory stays within the limit.
func TestMemoryLimit(t *testing.T) {
	limit, err := time.ParseDuration(os.Getenv(churnTime))
	if err != nil {
		limit = 700 * time.Millisecond
	}
	const models, size, bound = 100, 1 << 20, 20 << 20
	var l ledger
	name := func(i int) string { return fmt.Sprintf("m%d", i) }
	var configs []serve.Config
	for i := range models {
		configs = append(configs, summing(name(i), float32(1000*i), size, &l))
	}
	s := server(t, serve.Options{MemoryBytes: bound}, configs...)
	var removed [models]atomic.Bool // now or at some time during a request
	var changes [models]atomic.Int64
	end := time.Now().Add(limit)
	var all sync.WaitGroup
	var answers atomic.Int64
	for client := range 32 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(client)))
			for time.Now().Before(end) {
				i := int(min(r.ExpFloat64()*20, models-1))
				before, off := changes[i].Load(), removed[i].Load()
				y, code, text := addTo(t, s, name(i), 1)
				same := before == changes[i].Load() && off == removed[i].Load()
				switch number := int(y) - 1; {
				case code == 200 && number/1000 == i && number%1000 < 1000:
					answers.Add(1)
				case same && !off || code != 404 && code != 503:
					t.Errorf("model %d: %v, %d %s", i, y, code, text)
				}
			}
		})
	}
	all.Go(func() {
		r := rand.New(rand.NewPCG(4, 4))
		for n := 1; time.Now().Before(end); n++ {
			i := r.IntN(models)
			switch r.IntN(4) {
			case 0:
				changes[i].Add(1)
				removed[i].Store(true)
				s.Remove(name(i))
			case 1: // fails if the model is loaded, and else with its next request
				changes[i].Add(1)
				removed[i].Store(true)
				_ = s.Put(t.Context(), summing(name(i), -1, size, &l))
			default:
				if err := s.Put(t.Context(), summing(name(i), float32(1000*i+n%1000), size, &l)); err != nil {
					t.Error(err)
				}
				changes[i].Add(1)
				removed[i].Store(false)
			}
			time.Sleep(time.Millisecond)
		}
	})
	all.Wait()
	if answers.Load() < 100 || l.most.Load() > bound || s.MemoryBytes() > bound {
		t.Errorf("%d answers, at most %d bytes of %d", answers.Load(), l.most.Load(), bound)
	}
	if err := s.Close(); err != nil || l.now.Load() != 0 || s.MemoryBytes() != 0 {
		t.Errorf("after Close %d bytes are open, %d counted, %v", l.now.Load(), s.MemoryBytes(), err)
	}
	t.Logf("%d answers, at most %d bytes", answers.Load(), l.most.Load())
}

// TestScarceMemory sends requests to models of which one fits into memory: each is answered by its model, and one that cannot fit
// unloads no other.
func TestScarceMemory(t *testing.T) {
	var l ledger
	var configs []serve.Config
	for i := range 4 {
		configs = append(configs, summing(fmt.Sprint("m", i), float32(i), 100, &l))
	}
	large := summing("large", 1, 200, &l)
	large.Size = nil
	s := server(t, serve.Options{MemoryBytes: 150}, append(configs, large)...)
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for k := range 200 {
				i := (client + k) % 4
				if y, code, text := addTo(t, s, fmt.Sprint("m", i), 1); y != float32(1+i) {
					t.Errorf("model %d: %v, %d %s", i, y, code, text)
				}
			}
		})
	}
	all.Wait()
	_, _, _ = addTo(t, s, "m0", 1)
	if _, code, text := addTo(t, s, "large", 1); code != 503 || s.Model("m0").State() != serve.Ready {
		t.Errorf("a model that cannot fit: %d %s, the other is %s", code, text, s.Model("m0").State())
	}
}
