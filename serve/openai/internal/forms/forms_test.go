package forms

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/text"
)

// A form is compiled once as long as it is kept; what is kept is bounded by number and by size.
func TestFormCache(t *testing.T) {
	c, compiled := &formCache{}, 0
	maker := &Maker{t.Context(), nil, c}
	get := func(i int) *text.Form {
		f, err := c.get(maker, fmt.Sprint(i), func(text.FormLimit) (*text.Form, error) {
			compiled++
			return text.ChoiceForm([]string{"a", fmt.Sprint(i)})
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for range 3 {
		for i := range maxCachedForms {
			get(i)
		}
	}
	if first := get(0); compiled != maxCachedForms || first != get(0) {
		t.Errorf("%d forms compiled, want %d", compiled, maxCachedForms)
	}
	if get(maxCachedForms); len(c.list) != maxCachedForms || c.find("1") != nil || c.find("0") == nil {
		t.Errorf("%d forms are kept", len(c.list))
	}
	large := make([]string, 12)
	for i := range large {
		large[i] = fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":19000}`, i)
		if _, err := maker.Schema([]byte(large[i])); err != nil {
			t.Fatal(err)
		}
		if sum := 0; c.size > maxCachedSize || len(c.list) == 0 {
			t.Fatalf("forms of %d states are kept", c.size)
		} else if i == len(large)-1 {
			for _, f := range c.list {
				sum += f.size()
			}
			if sum != c.size {
				t.Errorf("the size is %d, want %d", c.size, sum)
			}
		}
	}
	if _, err := maker.Schema([]byte(`{"not":1}`)); err == nil {
		t.Error("an error is lost")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				if _, err := maker.Schema([]byte(large[(i*k)%7])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Few forms are made at once, and one that several requests want is kept once.
func TestFormsAtOnce(t *testing.T) {
	c := &formCache{}
	var running atomic.Int32
	began, end := make(chan bool, 100), make(chan bool)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := c.get(&Maker{t.Context(), nil, c}, fmt.Sprint(i%2), func(text.FormLimit) (*text.Form, error) {
				if n := running.Add(1); n > maxCompiling {
					t.Errorf("%d forms at once", n)
				}
				defer running.Add(-1)
				began <- true
				<-end
				return text.ChoiceForm([]string{"a"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range maxCompiling {
		<-began
	}
	for range 1000 {
		runtime.Gosched() // the others could begin
	}
	close(end)
	all.Wait()
	if len(c.list) != 2 || len(began) > 2 {
		t.Errorf("%d forms are kept, %d were made later", len(c.list), len(began))
	}
}

// The wait for others that are made ends with the request, and so does the making.
func TestFormsOfEndedRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &Maker{ctx, nil, &formCache{}}
	made := 0
	compile := func(limit text.FormLimit) (*text.Form, error) {
		made++
		return text.ChoiceForm([]string{"a"}, limit)
	}
	if _, err := m.Make(compile); !fault.IsUnmade(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("made: %v", err)
	}
	made = 0
	for range maxCompiling {
		compiling <- struct{}{}
	}
	defer func() {
		for range maxCompiling {
			<-compiling
		}
	}()
	if _, err := m.Make(compile); !fault.IsUnmade(err) || made > 0 {
		t.Errorf("waited: %v, made %d", err, made)
	}
}

// The memory of forms that are made counts toward that of requests. A request without room for it is refused as others are, and
// what is counted ends with the request.
func TestMemoryOfForms(t *testing.T) {
	const limit = 4 << 20
	s, err := serve.New(serve.Options{BusyBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := &Maker{t.Context(), s.NewReservation(), &formCache{}}
	if _, err := m.Schema([]byte(`{"type":"string","maxLength":19000}`)); !errors.Is(err, oip.ErrTooLarge) || m.memory.Size() != 0 {
		t.Errorf("a large form: %v, %d bytes are counted", err, m.memory.Size())
	}
	f, err := m.Schema([]byte(`{"type":"string","maxLength":1900}`))
	if err != nil || m.memory.Size() != int64(f.Size())*keptBytes {
		t.Errorf("%v, %d bytes are counted", err, m.memory.Size())
	}
	m.memory.Release()
	if all := s.NewReservation(); all.Grow(limit) != nil {
		t.Error("bytes are counted after the request")
	}
}

// A form that is no longer kept has no place in the list either, whose array is longer: it would stay in memory.
func TestDroppedForms(t *testing.T) {
	c, dropped := &formCache{}, 0
	for i := range 2 * maxCachedForms {
		var first weak.Pointer[text.Form]
		if len(c.list) == maxCachedForms {
			first = weak.Make(c.list[0].form)
		}
		if _, err := c.get(&Maker{t.Context(), nil, c}, fmt.Sprint(i), func(text.FormLimit) (*text.Form, error) { return text.ChoiceForm([]string{"a"}) }); err != nil {
			t.Fatal(err)
		}
		if len(c.list) == maxCachedForms {
			runtime.GC()
			if dropped++; first.Value() != nil {
				t.Fatalf("form %d was dropped and is in memory", i-maxCachedForms)
			}
		}
	}
	if dropped <= maxCachedForms {
		t.Errorf("%d forms were dropped", dropped)
	}
	runtime.KeepAlive(c)
}
