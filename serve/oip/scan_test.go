package oip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// pieces reads a body in pieces of random sizes.
type pieces struct {
	from io.Reader
	r    *rand.Rand
	most int
}

func (p pieces) Read(b []byte) (int, error) { return p.from.Read(b[:min(len(b), 1+p.r.IntN(p.most))]) }

// ways are the ways in which a body arrives.
func ways(body string) map[string]io.Reader {
	r := rand.New(rand.NewPCG(1, uint64(len(body))))
	return map[string]io.Reader{
		"at once":    strings.NewReader(body),
		"with end":   iotest.DataErrReader(strings.NewReader(body)),
		"bytes":      iotest.OneByteReader(strings.NewReader(body)),
		"pieces":     pieces{strings.NewReader(body), r, 7},
		"long parts": pieces{strings.NewReader(body), r, 5000},
	}
}

var large = Limits{Header: 1 << 24, Body: 1 << 24, Tensors: 1 << 24, Inputs: 4}

// rowOf returns the elements of an array as package encoding/json reads them into a slice of a type, and whether it does. Null is no
// element.
func rowOf(text string, of reflect.Type) (data []byte, n int, ok bool) {
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(text), &elements); err != nil || elements == nil {
		return nil, 0, false
	}
	for _, e := range elements {
		x := reflect.New(of)
		if err := json.Unmarshal(e, x.Interface()); err != nil || string(e) == "null" {
			return nil, len(elements), false
		}
		data = append(data, le(x.Elem().Interface())...)
	}
	return data, len(elements), true
}

// types are those of Go that package encoding/json reads like a datatype.
var types = map[Datatype]reflect.Type{
	"FP32": reflect.TypeFor[float32](), "FP64": reflect.TypeFor[float64](), "INT8": reflect.TypeFor[int8](), "INT16": reflect.TypeFor[int16](),
	"INT32": reflect.TypeFor[int32](), "INT64": reflect.TypeFor[int64](), "UINT8": reflect.TypeFor[uint8](),
	"UINT16": reflect.TypeFor[uint16](), "UINT32": reflect.TypeFor[uint32](), "UINT64": reflect.TypeFor[uint64](),
}

// compareRow reads a text as the data of each datatype, and compares the outcome with that of encoding/json.
func compareRow(t *testing.T, text string) {
	t.Helper()
	for d, of := range types {
		want, n, ok := rowOf(text, of)
		body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":%q,"shape":[%d],"data":%s}]}`, d, n, text)
		for way, from := range ways(body) {
			r, err := Read(from, "", large)
			if (err == nil) != ok {
				t.Fatalf("%s, %s: got %v, valid: %v", body, way, err, ok)
			}
			if err == nil && !bytes.Equal(r.Inputs[0].Data, want) {
				t.Fatalf("%s, %s: got %x, want %x", body, way, r.Inputs[0].Data, want)
			}
		}
	}
}

var numberTexts = []string{"0", "-0", "7", "-128", "127", "128", "255", "256", "65535", "65536", "-32769", "2147483647", "2147483648", "-2147483648",
	"4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551616", "99999999999999999999", "0.1", "0.123456789", "0.12345679104328156", "1e3", "1E+3", "-1.5e-7",
	"3.4028236e38", "1e39", "1e-50", "1e400", "1.7976931348623157e308", "123456789.123456789123456789", "0.000000000000000000000000000000000000000000001",
	"1" + strings.Repeat("0", 70), "0." + strings.Repeat("3", 300), "1e0", "01", "1.", ".1", "+1", "1e", "-", "true", "null", `"1"`, "[1]", "{}", "nul", "NaN", "1 2", ""}

// TestRows reads rows of every datatype with usual and unusual elements at every position, and compares them with encoding/json.
func TestRows(t *testing.T) {
	for _, n := range numberTexts {
		for _, form := range []string{"[%s]", "[%s,1]", "[ 5 ,%s]", "[5,\n%s ]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,%s,2]"} {
			compareRow(t, fmt.Sprintf(form, n))
		}
	}
	for _, text := range []string{"[]", "[ ]", "[,]", "[1,]", "[,1]", "[1,,2]", "[1 1]", "[1", "[", "[1,", "[1}", "[1]]", "[1],", "{}", "5", "null", "[[1]]", "[1\x00]", "[1\v]"} {
		compareRow(t, text)
	}
}

// TestLongRows reads arrays that are longer than the buffers, flat and nested, in every way and place: in a body, in the JSON part before
// binary data, and before the shape.
func TestLongRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const rows, columns = 500, 77 // of more bytes than the buffers have
	values := make([]float32, rows*columns)
	flat, nested := new(strings.Builder), new(strings.Builder)
	for i := range values {
		values[i] = float32(r.NormFloat64())
		text := fmt.Sprint(values[i])
		flat.WriteString([]string{"", "\t\n  ", strings.Repeat(" ", 3000)}[min(i%7, i%4000/3000+1, 2)*(1-min(i%7, 1))] + text + ",")
		if i%columns == 0 {
			nested.WriteString("[")
		}
		nested.WriteString(text)
		nested.WriteString([]string{", ", "], "}[(i%columns+1)/columns])
	}
	for _, data := range []string{"[" + strings.TrimSuffix(flat.String(), ",") + "]", " [" + strings.TrimSuffix(nested.String(), ", ") + " ]"} {
		const about = `"datatype":"FP32","shape":[500,77]`
		for i, body := range []string{`{"inputs":[{"name":"x",` + about + `,"data":` + data + `},{"name":"y","datatype":"INT8","shape":[2],"data" : [1,2]}]}`,
			`{"inputs":[{"name":"x","data":` + data + `,` + about + `},{"name":"y","datatype":"INT8","shape":[2],"data":[1,2]}],"data":[[1]]}`,
			`{"inputs":[{"name":"x",` + about + `,"d\u0061ta":` + data + `},{"name":"y","datatype":"INT8","shape":[2],"data":[1,2]}],"id":"data\"[x"}`} {
			for way, from := range ways(body) {
				got, err := Read(from, "", large)
				if err != nil || !bytes.Equal(got.Inputs[0].Data, le(values)) || !bytes.Equal(got.Inputs[1].Data, []byte{1, 2}) {
					t.Fatalf("body %d, %s: %v", i, way, err)
				}
			}
			got, err := Read(strings.NewReader(body), fmt.Sprint(len(body)), large)
			if err != nil || !bytes.Equal(got.Inputs[0].Data, le(values)) || !bytes.Equal(got.Inputs[1].Data, []byte{1, 2}) {
				t.Fatalf("body %d, as a JSON part: %v", i, err)
			}
		}
	}
}

// TestBufferEnds reads numbers of all lengths and forms where the buffer ends, at each of their bytes.
func TestBufferEnds(t *testing.T) {
	texts := []string{"-1.23456789012345", "0.5", "-0", "1234567890123456789", "1e-7", "0." + strings.Repeat("7", 80), "5", "-0.1234567e+2"}
	row := "[" + strings.Join(texts, ",") + " , 6]"
	want, n, ok := rowOf(row, types["FP32"])
	if !ok {
		t.Fatal(row)
	}
	begin := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d],"data":`, n)
	for at := range len(row) + 100 {
		for _, end := range []int{smallBuffer - padding, longArray} {
			body := begin + strings.Repeat(" ", end-at-len(begin)) + row + "}]}"
			got, err := Read(strings.NewReader(body), "", large)
			if err != nil || !bytes.Equal(got.Inputs[0].Data, want) {
				t.Fatalf("array at %d: %v, %v", end-at, got, err)
			}
			body = begin + "[" + strings.Repeat(" ", end-at-len(begin)) + row[1:] + "}]}"
			got, err = Read(strings.NewReader(body), "", large)
			if err != nil || !bytes.Equal(got.Inputs[0].Data, want) {
				t.Fatalf("elements at %d: %v, %v", end-at, got, err)
			}
		}
	}
}

// TestFaultPositions checks that errors name the byte, element and member at which the JSON is wrong, also behind arrays that the decoder
// has not seen.
func TestFaultPositions(t *testing.T) {
	const first = `{"inputs":[{"name":"x","datatype":"INT32","shape":[3],"data":  [1, 2,3]}`
	for _, c := range []struct{ body, want string }{
		{first + `,{"name":"y","datatype":"INT8","shape":[1],"data":[x]}]}`, "inputs[1].data: invalid JSON at byte ^[x: invalid character 'x', want a value"},
		{first + `,{"name":"y","datatype":"INT8","shape":[2],"data":[1 2]}]}`, "inputs[1].data: invalid JSON at byte ^2]: invalid character '2', want a comma"},
		{first + `,{"name":"y","datatype":"INT8","shape":[2],"data":[1,-]}]}`, "inputs[1].data: invalid JSON at byte ^-]: invalid character '-', want a value"},
		{first + `,{"name":"y","datatype":"INT8","shape":[2],"data":[1,`, "inputs[1].data: JSON truncated after ^ bytes"},
		{first + `,{"name":"y","datatype":"INT8","shape":[2],"data":[1,300]}]}`, "inputs[1].data: element 1 is 300, want INT8"},
		{first + `,{"name":"y","datatype":"INT8","shape":[2,1],"data":[[1],["2"]]}]}`, "inputs[1].data: element 1 is a string, want INT8"},
		{first + `,{"name":"y",}]}`, "invalid JSON at byte ^,}]}: "},
		{first + `5]}`, "invalid JSON at byte ^5]}: "},
		{strings.TrimSuffix(first, "}") + `5}]}`, "invalid JSON at byte ^5}]}: "},
		{first + `,{"name":"y"`, "JSON truncated after ^ bytes"},
		{first + `,{"name":"y","datatype":"INT8","shape":[1],"data":[` + strings.Repeat("1", 2000) + `]}]}`, "element 0 has 1024 bytes or more"},
		{strings.Replace(first, "2,3]", `2,3],"data":[1,2,3]`, 1) + "]}", "duplicate"},
	} {
		want := c.want
		if prefix, rest, ok := strings.Cut(want, "^"); ok {
			after, rest, _ := strings.Cut(rest, map[bool]string{true: ":", false: " bytes"}[strings.Contains(rest, ":")])
			at := strings.LastIndex(c.body, after)
			if strings.HasPrefix(after, "[x") {
				at++
			}
			if after == "" {
				at = len(c.body)
			}
			want = prefix + fmt.Sprint(at)
			_ = rest
		}
		for way, from := range ways(c.body) {
			_, err := Read(from, "", limits)
			if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: got %v, want %s", c.body, way, err, want)
			}
		}
	}
}

// FuzzRow compares rows of any datatype with encoding/json.
func FuzzRow(f *testing.F) {
	for _, n := range numberTexts {
		f.Add("[1," + n + ", 2]")
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 || strings.ContainsAny(text, "\"") || !strings.HasPrefix(text, "[") {
			t.Skip() // the packages differ in strings, not in numbers; other members may follow what is no array
		}
		compareRow(t, text)
	})
}

// A tensor that is larger than its limit, or has more elements than the body can have, is refused before it is allocated, wherever its data
// are.
func TestScanAllocates(t *testing.T) {
	const large = `"datatype":"FP64","shape":[1000000]`
	const long = `"datatype":"INT8","shape":[1000]`
	for _, c := range []struct {
		member, header string
		class          error
	}{
		{large + `,"data":[1]`, "", ErrTooLarge}, {`"data":[1],` + large, "", ErrTooLarge},
		{long + `,"data":[1]`, "", ErrInvalid}, {`"data":[1],` + long, "", ErrInvalid},
		{long + `,"parameters":{"binary_data_size":1000}`, "all", ErrInvalid},
	} {
		body := `{"inputs":[{"name":"x",` + c.member + `}]}`
		few := limits
		few.Body = int64(len(body)) + 3
		few.Alloc = func(n int) []byte {
			t.Errorf("%s: %d bytes are allocated", body, n)
			return tensor.AlignedBytes(n)
		}
		header := ""
		if c.header != "" {
			header = fmt.Sprint(len(body))
		}
		if _, err := Read(strings.NewReader(body+"   "), header, few); !errors.Is(err, c.class) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
