package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/text"
)

// A form is compiled once as long as it is kept; what is kept is bounded by number and by size.
func TestFormCache(t *testing.T) {
	c, compiled := &formCache{}, 0
	get := func(i int) *text.Form {
		f, err := c.get(fmt.Sprint(i), func() (*text.Form, error) {
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
	if compiled != maxCachedForms || get(0) != get(0) {
		t.Errorf("%d forms compiled, want %d", compiled, maxCachedForms)
	}
	if get(maxCachedForms); len(c.list) != maxCachedForms || c.find("1") != nil || c.find("0") == nil {
		t.Errorf("%d forms are kept", len(c.list))
	}
	large := make([]string, 12)
	for i := range large {
		large[i] = fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":19000}`, i)
		if _, err := c.schema([]byte(large[i])); err != nil {
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
	if _, err := c.schema([]byte(`{"not":1}`)); err == nil {
		t.Error("an error is lost")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				if _, err := c.schema([]byte(large[(i*k)%7])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// What a format cannot prescribe is refused if the tool is strict, and any value of its type otherwise.
func TestStrictTools(t *testing.T) {
	for _, c := range []struct {
		schema string
		loose  bool // Gemma's and Qwen3-Coder's formats have it
	}{
		{`{"type":"object","properties":{"s":{"type":"string","pattern":"^a$"}},"required":["s"]}`, false},
		{`{"type":"object","properties":{"s":{"enum":["a","b"]},"n":{"type":"integer","minimum":3}}}`, true},
		{`{"anyOf":[{"type":"object","properties":{"s":{"type":"string"}}}]}`, false},
		{`{"type":"object","properties":{}}`, false},
		{`{"type":"object","properties":{},"additionalProperties":false}`, true},
	} {
		for i := range callFormats {
			f := &callFormats[i]
			inJSON := f.args != "" || f.named != ""
			for _, strict := range []bool{false, true} {
				u := &toolUse{tools: []toolFunction{{"f", json.RawMessage(c.schema), strict}}, must: true}
				_, err := f.form(u, "")
				_, refused := errors.AsType[*requestError](err)
				if want := strict && !inJSON && !c.loose; refused != want || !want && err != nil {
					t.Errorf("%s, strict %v, %s: %v", f.name, strict, c.schema, err)
				}
			}
		}
	}
}
