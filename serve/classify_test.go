package serve_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// TestClassification compares the largest elements of an output with the output.
func TestClassification(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "digits", Open: program("digits/portable.pte")})
	image, err := json.Marshal(digits(t)[:64])
	if err != nil {
		t.Fatal(err)
	}
	first := func(parameters string) (shape []int, data []any, code int) {
		w := ask(s, "POST", "/v2/models/digits/infer", `{"outputs":[{"name":"output_0","parameters":{`+parameters+
			`}}],"inputs":[{"name":"input_0","shape":[1,1,8,8],"datatype":"FP32","data":`+string(image)+`}]}`)
		var object struct {
			Outputs []struct {
				Shape []int
				Data  []any
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &object); err != nil || w.Code == 200 && len(object.Outputs) != 1 {
			t.Fatal(err, w.Body)
		}
		if w.Code != 200 {
			return nil, nil, w.Code
		}
		return object.Outputs[0].Shape, object.Outputs[0].Data, w.Code
	}
	_, all, _ := first("")
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].(float64), all[a].(float64)) })
	for _, n := range []int{1, 3, 10, 100} {
		shape, data, code := first(fmt.Sprintf(`"classification":%d`, n))
		n = min(n, len(all))
		if code != 200 || !slices.Equal(shape, []int{1, n}) || len(data) != n {
			t.Fatalf("%d classes: %d, shape %v, %v", n, code, shape, data)
		}
		for i, text := range data {
			if want := fmt.Sprintf("%f:%d", all[order[i]], order[i]); text != want {
				t.Errorf("class %d of %d: %v, want %s", i, n, text, want)
			}
		}
	}
	for _, bad := range []string{`"classification":0`, `"classification":-1`, `"classification":1000000000000`, `"classification":"3"`, `"classification":{}`} {
		if _, _, code := first(bad); code != 400 {
			t.Errorf("%s: %d", bad, code)
		}
	}
}
