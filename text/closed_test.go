package text_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// closable are objects to be called after or while they are closed.
type closable struct {
	program *etrun.Program
	model   *text.Model
	session *text.Session
}

func openClosable(t *testing.T) *closable {
	t.Helper()
	ctx := context.Background()
	p, err := etrun.Open("testdata/dynamic.pte", etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Open("testdata/bytes.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := text.Load(ctx, p, tok)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Generate(ctx, "some text", text.Options{MaxTokens: 2}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return &closable{p, m, s}
}

func (c *closable) close(t *testing.T) {
	for _, object := range []interface{ Close() error }{c.session, c.model, c.program} {
		if err := object.Close(); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}

// callAll calls all exported methods of an object except Close, and returns their errors by name.
func (c *closable) callAll(t *testing.T, object any) map[string]error {
	template, err := text.NewTemplate("plain", `{"message": "{role}: {text}"}`)
	if err != nil {
		t.Fatal(err)
	}
	known := []any{context.Background(), "some text", []int{1, 2}, text.Options{MaxTokens: 2}, template,
		[]text.Message{{Role: "user", Content: "text"}}}
	v, errs := reflect.ValueOf(object), make(map[string]error)
	for i := range v.NumMethod() {
		call, name := v.Method(i), v.Type().Method(i).Name
		if name == "Close" {
			continue
		}
		var args []reflect.Value
		for k := range call.Type().NumIn() {
			of := call.Type().In(k)
			at := slices.IndexFunc(known, func(x any) bool { return reflect.TypeOf(x).AssignableTo(of) })
			if args = append(args, reflect.Zero(of)); at >= 0 {
				args[k] = reflect.ValueOf(known[at])
			}
		}
		run := call.Call
		if call.Type().IsVariadic() {
			run = call.CallSlice
		}
		for _, out := range run(args) {
			switch x := out.Interface().(type) {
			case error:
				errs[name] = x
			case *text.Session:
				if x != nil {
					x.Close()
				}
			case iter.Seq2[text.Piece, error]:
				for _, err := range x {
					errs[name] = err
				}
			case iter.Seq2[[]text.Token, error]:
				for _, err := range x {
					errs[name] = err
				}
			}
		}
		if _, ok := errs[name]; !ok {
			errs[name] = nil
		}
	}
	return errs
}

// TestClosedObjects calls every method of a closed session and model, twice. Those of the model do not need
// an instance, except NewSession.
func TestClosedObjects(t *testing.T) {
	c := openClosable(t)
	for range 2 {
		c.close(t)
		for name, err := range c.callAll(t, c.session) {
			if name != "Model" && !errors.Is(err, etrun.ErrClosed) {
				t.Errorf("%s of a closed session: got %v, want ErrClosed", name, err)
			}
		}
		for name, err := range c.callAll(t, c.model) {
			if name == "NewSession" && !errors.Is(err, etrun.ErrClosed) || name != "NewSession" && errors.Is(err, etrun.ErrClosed) {
				t.Errorf("%s of a closed model: got %v", name, err)
			}
		}
	}
}

// TestCallsDuringClose does that while another goroutine closes the objects.
func TestCallsDuringClose(t *testing.T) {
	for round := range 20 {
		c := openClosable(t)
		var both sync.WaitGroup
		both.Go(func() {
			for range round % 5 * 20 {
				runtime.Gosched()
			}
			c.close(t)
		})
		for range 3 {
			for _, object := range []any{c.session, c.model} {
				for name, err := range c.callAll(t, object) {
					if errors.Is(err, etrun.ErrPanic) {
						t.Errorf("%T.%s: %v", object, name, err)
					}
				}
			}
		}
		both.Wait()
	}
}

// TestCloseWithinCall closes a session at the first piece of each iterator: the call still reads the memory of the instance.
func TestCloseWithinCall(t *testing.T) {
	ctx := context.Background()
	prompt := []int{1, 2, 3, 4, 5}
	for name, pieces := range map[string]func(*text.Session) iter.Seq[error]{
		"Generate": func(s *text.Session) iter.Seq[error] {
			return errorsOf(s.GenerateTokens(ctx, prompt, text.Options{MaxTokens: 8}))
		},
		"Score": func(s *text.Session) iter.Seq[error] { return errorsOf(s.Score(ctx, prompt, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := openClosable(t)
			defer c.close(t)
			var last error
			for last = range pieces(c.session) {
				c.close(t)
			}
			if last != nil && !errors.Is(last, etrun.ErrClosed) {
				t.Errorf("the call ends with %v, want ErrClosed", last)
			}
			if _, err := c.session.Tokens(); !errors.Is(err, etrun.ErrClosed) {
				t.Errorf("a later call: got %v, want ErrClosed", err)
			}
		})
	}
}

func errorsOf[P any](pieces iter.Seq2[P, error]) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, err := range pieces {
			if !yield(err) {
				return
			}
		}
	}
}
