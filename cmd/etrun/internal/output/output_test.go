package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// ptr returns a pointer to a value for lists.
func ptr(v tensor.Value) *tensor.Value { return &v }

func values() []*tensor.Value {
	channelsLast := tensor.Make(tensor.Float32, []int{1, 2, 1, 2}, []uint8{0, 2, 3, 1}, tensor.Static)
	channelsLast.Bind(tensor.BytesOf([]float32{1, 2, 3, 4}))
	list := tensor.NewList(tensor.KindIntList, []*tensor.Value{ptr(tensor.IntValue(7)), ptr(tensor.IntValue(8))})
	tensors := tensor.NewList(tensor.KindOptionalTensorList, []*tensor.Value{ptr(tensor.TensorValue(tensor.Of([]int8{5}))), {}})
	return []*tensor.Value{
		ptr(tensor.TensorValue(channelsLast)), ptr(tensor.IntValue(5)), ptr(tensor.DoubleValue(math.Inf(-1))), ptr(tensor.BoolValue(false)),
		ptr(tensor.StringValue("a")), {}, &list, &tensors, {Kind: tensor.KindDoubleList, Doubles: []float64{0.5}},
	}
}

const wantIndex = `[
 {"index":0,"kind":"tensor","dtype":"float32","shape":[1,2,1,2],"dim_order":[0,2,3,1],"file":"out0.bin"},
 {"index":1,"kind":"int","value":5},
 {"index":2,"kind":"double","value":"-Infinity"},
 {"index":3,"kind":"bool","value":false},
 {"index":4,"kind":"string","value":"a"},
 {"index":5,"kind":"none"},
 {"index":6,"kind":"int_list","items":[{"index":0,"kind":"int","value":7},{"index":1,"kind":"int","value":8}]},
 {"index":7,"kind":"optional_tensor_list","items":[{"index":0,"kind":"tensor","dtype":"int8","shape":[],"dim_order":[],"file":"out7.0.bin"},{"index":1,"kind":"none"}]},
 {"index":8,"kind":"double_list","items":[{"index":0,"kind":"double","value":0.5}]}
]`

func compact(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listing returns the paths of all files below dir.
func listing(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && rel != "." {
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := f.Add(0, values())
	if err != nil || len(entries) != len(values()) {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if _, err := f.Add(1, values()[:1]); err != nil {
		t.Fatal(err)
	}
	for _, name := range listing(t, dir) {
		if !strings.HasPrefix(name, ".etrun-") {
			t.Errorf("%s is there before Commit", name)
		}
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got, want := listing(t, dir), []string{"call1", "call1/out0.bin", "call1/outputs.json", "out0.bin", "out7.0.bin", "outputs.json"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if got, want := compact(t, read(t, filepath.Join(dir, "outputs.json"))), compact(t, []byte(wantIndex)); got != want {
		t.Errorf("outputs.json\n%s, want\n%s", got, want)
	}
	if got, want := read(t, filepath.Join(dir, "out0.bin")), tensor.BytesOf([]float32{1, 2, 3, 4}); !bytes.Equal(got, want) {
		t.Errorf("out0.bin % x, want memory order % x", got, want)
	}
}

func TestFolderWithoutCommitLeavesNothing(t *testing.T) {
	root := t.TempDir()
	f, err := Open(t.Context(), filepath.Join(root, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(0, values()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := listing(t, root); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestFolderWithoutCommitKeepsEarlierOutputs(t *testing.T) {
	dir := t.TempDir()
	for _, commit := range []bool{true, false} {
		f, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		n := 1
		if !commit {
			n = 3
		}
		if _, err := f.Add(0, values()[:n]); err != nil {
			t.Fatal(err)
		}
		if commit {
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	if got, want := listing(t, dir), []string{"out0.bin", "outputs.json"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	var entries []Entry
	if err := json.Unmarshal(read(t, filepath.Join(dir, "outputs.json")), &entries); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v; want the one of the committed run", len(entries), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		f, err := Open(t.Context(), dir)
		if f != nil || err == nil {
			t.Errorf("%s: got %v, %v, want an error", dir, f, err)
		}
	}
}

// A folder that is removed during a run is an example of any file system error.
func TestAddReportsFaults(t *testing.T) {
	f, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.RemoveAll(f.stage); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.stage, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(0, values()); err == nil {
		t.Error("no error")
	} else if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("%v is no *Error", err)
	}
}

func TestSummarize(t *testing.T) {
	nan := float32(math.NaN())
	cases := []struct {
		name string
		t    *tensor.Tensor
		want string
	}{
		{"logits", tensor.Of([]float32{1, 5, 2, 4, 3, -0.5}, 1, 6), `{"min":-0.5,"max":5,"mean":2.4166666666666665,"first":[1,5,2,4,3,-0.5],"top":[{"class":1,"score":5},{"class":3,"score":4},{"class":4,"score":3},{"class":2,"score":2},{"class":0,"score":1}]}`},
		{"a batch is no logits", tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 2, 5), `{"min":1,"max":10,"mean":5.5,"first":[1,2,3,4,5,6]}`},
		{"integers are no logits", tensor.Of([]int32{1, 2, 3, 4, 5}, 5), `{"min":1,"max":5,"mean":3,"first":[1,2,3,4,5]}`},
		{"some NaN", tensor.Of([]float32{nan, 2}, 2), `{"min":2,"max":2,"mean":2,"nans":1,"first":["NaN",2]}`},
		{"all NaN", tensor.Of([]float32{nan}, 1), `{"min":"NaN","max":"NaN","mean":"NaN","nans":1,"first":["NaN"]}`},
		{"rank 0", tensor.Of([]bool{true}), `{"min":1,"max":1,"mean":1,"first":[1]}`},
		{"empty", tensor.New(tensor.Float32, 0, 3), "null"},
		{"no numbers", tensor.New(tensor.Complex64, 2), "null"},
		{"more than a block", tensor.New(tensor.Uint8, 3000), `{"min":0,"max":0,"mean":0,"first":[0,0,0,0,0,0]}`},
	}
	for _, c := range cases {
		got, err := json.Marshal(new(Scores).Summarize(c.t))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	for i, v := range values() {
		new(Scores).Print(&b, i, v)
	}
	new(Scores).Print(&b, 9, ptr(tensor.TensorValue(tensor.Of([]float32{1, 5, 2.25, 4, 3, -1, 0}, 1, 7))))
	want := `  output 0: float32 1x2x1x2  min 1  max 4  mean 2.5
    first 1 2 3 4
  output 1: int 5
  output 2: double -Inf
  output 3: bool false
  output 4: string "a"
  output 5: none
  output 6: int list of 2
    0: int 7
    1: int 8
  output 7: optional tensor list of 2
    0: int8 scalar  min 5  max 5  mean 5
    first 5
    1: none
  output 8: double list of 1
    0: double 0.5
  output 9: float32 1x7  min -1  max 5  mean 2.0357
    first 1 5 2.25 4 3 -1 …
    top  1 (5)  3 (4)  4 (3)  2 (2.25)  0 (1)
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
