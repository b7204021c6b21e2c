package etrun_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/await"
)

// closable are the objects of a program, to be called after or while they are closed.
type closable struct {
	program *etrun.Program
	method  *etrun.Method
	pool    *etrun.Pool
}

func openClosable(t *testing.T, path string, engine xnnpack.Engine, options ...etrun.Option) *closable {
	t.Helper()
	p, err := etrun.Open(path, append(options, etrun.WithDelegates(xnnpack.Backend{Engine: engine}), etrun.WithThreads(1),
		etrun.WithLowering(etrun.LowerAuto))...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Load(context.Background(), "")
	if errors.Is(err, delegate.ErrMissing) || errors.Is(err, etrun.ErrMissing) {
		p.Close()
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	pool, err := p.NewPool("", 1)
	if err != nil {
		t.Fatal(err)
	}
	return &closable{p, m, pool}
}

func (c *closable) close() {
	c.pool.Close()
	c.method.Close()
	c.program.Close()
}

// argument returns an argument of a type for a call of a closed object.
func (c *closable) argument(of reflect.Type) reflect.Value {
	use := func(m *etrun.Method) error { return m.Reset() }
	for _, x := range []any{context.Background(), c.method, use} {
		if v := reflect.ValueOf(x); v.Type().AssignableTo(of) {
			return v
		}
	}
	return reflect.Zero(of)
}

// callAll calls all exported methods of an object except Close, and returns their errors by name.
func (c *closable) callAll(object any) map[string]error {
	v, errs := reflect.ValueOf(object), make(map[string]error)
	for i := range v.NumMethod() {
		call, name := v.Method(i), v.Type().Method(i).Name
		if name == "Close" {
			continue
		}
		var args []reflect.Value
		for k := range call.Type().NumIn() {
			if call.Type().IsVariadic() && k == call.Type().NumIn()-1 {
				break
			}
			args = append(args, c.argument(call.Type().In(k)))
		}
		for _, out := range call.Call(args) {
			if out.Type() == reflect.TypeFor[error]() {
				errs[name], _ = out.Interface().(error)
			}
		}
	}
	return errs
}

// closedErrors are the methods that answer in closed objects.
var closedErrors = map[string]bool{"Meta": true, "CopyState": true, "CopyStateOf": true}

// TestClosedObjects calls every method of a closed program, method and pool.
func TestClosedObjects(t *testing.T) {
	calls := 0
	for _, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineNative} {
		for _, path := range []string{"testdata/digits/xnnpack.pte", "testdata/digits/portable.pte"} {
			for _, option := range []etrun.Option{etrun.WithSeed(0), etrun.WithMmap(), etrun.WithLowering(etrun.LowerVerify)} {
				c := openClosable(t, path, engine, option)
				if c == nil {
					continue
				}
				c.close()
				for range 2 {
					for _, object := range []any{c.program, c.method, c.pool} {
						for name, err := range c.callAll(object) {
							if calls++; !errors.Is(err, etrun.ErrClosed) && !closedErrors[name] {
								t.Errorf("%T.%s of a closed object: got %v, want ErrClosed", object, name, err)
							}
						}
					}
					c.close()
				}
			}
		}
	}
	if calls < 100 {
		t.Errorf("only %d calls", calls)
	}
}

// TestCallsDuringClose does that while another goroutine closes the objects.
func TestCallsDuringClose(t *testing.T) {
	for _, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineNative} {
		for round := range 20 {
			c := openClosable(t, "testdata/digits/xnnpack.pte", engine, etrun.WithMmap())
			if c == nil {
				break
			}
			var both sync.WaitGroup
			both.Go(func() {
				for range round % 5 {
					runtime.Gosched()
				}
				c.close()
			})
			for range 3 {
				for _, object := range []any{c.program, c.method, c.pool} {
					for name, err := range c.callAll(object) {
						if errors.Is(err, etrun.ErrPanic) {
							t.Errorf("%T.%s: %v", object, name, err)
						}
					}
				}
			}
			both.Wait()
		}
	}
}

// TestUnmapsWithoutClose drops a mapped program without closing it.
func TestUnmapsWithoutClose(t *testing.T) {
	maps := func() int {
		data, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip("needs /proc/self/maps: ", err)
		}
		return strings.Count(string(data), "digits/portable.pte")
	}
	m := openClosable(t, "testdata/digits/portable.pte", xnnpack.EngineGo, etrun.WithMmap()).method
	runtime.GC()
	runtime.GC()
	if maps() == 0 {
		t.Fatal("the file of a reachable method is not mapped")
	}
	if _, err := etrun.Run[float32](context.Background(), m, make([]float32, 64)); err != nil {
		t.Error(err)
	}
	m = nil
	await.True(t, "the file of an unreachable program is not mapped", func() bool { runtime.GC(); return maps() == 0 })
}

// TestCollectedWithoutClose drops programs that ran, without closing them.
func TestCollectedWithoutClose(t *testing.T) {
	for _, file := range []string{"digits/portable.pte", "digits/xnnpack.pte", "pte/dynamic_pair_xnnpack.pte"} {
		for _, engine := range xnnpack.Engines {
			c := openClosable(t, "testdata/"+file, engine)
			if c == nil {
				continue
			}
			p := weak.Make(c.program)
			runtime.KeepAlive(c)
			await.True(t, file+" on engine "+string(engine)+" is collected", func() bool { runtime.GC(); return p.Value() == nil })
		}
	}
}
