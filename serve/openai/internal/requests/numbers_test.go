package requests

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Whole numbers are integers, however they are written; other numbers and strings stay as they are.
func TestIntegral(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"n":3.0,"a":[1e2,-2.50e1,0.5,-0.0,1E0]}`, `{"n":3,"a":[100,-25,0.5,0,1]}`},
		{`{"s":"3.0 \" 4.0","n":1}`, `{"s":"3.0 \" 4.0","n":1}`},
		{`{"s\\":5.0}`, `{"s\\":5}`},
		{`[1e300,1e400,9007199254740993.0,9007199254740994.0,123456789012345678]`,
			`[1e300,1e400,9007199254740992,9007199254740994.0,123456789012345678]`},
		{`3.0`, `3`},
		{`-`, `-`},
		{`"`, `"`},
	} {
		if got := string(integral([]byte(c.body))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.body, got, c.want)
		}
	}
}

// The values do not change.
func TestIntegralKeepsValues(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		var list []string
		for range r.IntN(6) {
			x := []float64{float64(r.IntN(2000) - 1000), r.NormFloat64(), r.NormFloat64() * 1e18}[r.IntN(3)]
			text := strconv.FormatFloat(x, "eEfg"[r.IntN(4)], -1, 64)
			list = append(list, text, strconv.Quote(text+"\\"))
		}
		body := "[" + strings.Join(list, ",") + "]"
		var a, b []any
		if json.Unmarshal([]byte(body), &a) != nil || json.Unmarshal(integral([]byte(body)), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%s became %s", body, integral([]byte(body)))
		}
	}
}
