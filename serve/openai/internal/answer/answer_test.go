package answer

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

var update = flag.Bool("update", false, "write the golden files")

// varying are the parts of answers that differ each time.
var varying = regexp.MustCompile(`[0-9a-f]{32}|"(call_)?id":"[0-9a-f]{9}"|"created(_at)?":[0-9]+`)

// splitting divides replies into thoughts, text and calls of f.
func splitting(t *testing.T, m *text.Model) *toolcall.Splitting {
	t.Helper()
	template, err := text.NewJinjaTemplate("own", `<think></think><tool_call>`+openaitest.Template(`<tool_call>{{ {"name": f.name, "arguments": f.arguments} | tojson }}</tool_call>`), "", "")
	if err != nil {
		t.Fatal(err)
	}
	template = template.WithTools()
	f, err := toolcall.FormatOf(m, template)
	if err != nil {
		t.Fatal(err)
	}
	u := &toolcall.Use{}
	if err := json.Unmarshal([]byte(`[{"name":"f"}]`), &u.Tools); err != nil {
		t.Fatal(err)
	}
	return toolcall.SplittingOf(template, f, u, "")
}

// pieces are those of a text whose parts are these; each has a token.
func pieces(parts ...string) (list []text.Piece) {
	for i, s := range parts {
		p := text.Piece{Text: s}
		for _, c := range []byte(s[:min(len(s), 2)]) {
			top := []text.Candidate{{ID: int(c), LogProb: -0.25}, {ID: 'z', LogProb: -1e-7}}
			p.Tokens = append(p.Tokens, text.Token{ID: int(c), LogProb: -0.25, Top: top})
		}
		if i == len(parts)-1 {
			p.Finish, p.Stats = text.FinishStop, text.Stats{Prompt: 5, Reused: 2, Generated: len(parts)}
		}
		list = append(list, p)
	}
	return list
}

// Answers have the bytes of the golden files: all kinds, whole and as streams, complete and ended by an error.
func TestAnswers(t *testing.T) {
	m := openaitest.Model(t)
	server, err := serve.New(serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	divided := splitting(t, m)
	reply := pieces("<think>why", " <b>\n</think>", "Say \"é\u2028&", "\n<tool_call>{\"name\": \"f\", \"argu", "ments\": {\"a\": \"<", "\"}}</tool_call>",
		"<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "")
	call := pieces("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "")
	plain := pieces("é\t<x>", "", "z\"", "")
	for _, c := range []struct {
		name  string
		want  Wanted
		echo  string
		split *toolcall.Splitting
		texts [][]text.Piece
	}{
		{"completion", Wanted{Kind: Completion, Usage: true, LogProbs: true}, "", nil, [][]text.Piece{plain, plain}},
		{"echo", Wanted{Kind: Completion}, "<e>", nil, [][]text.Piece{plain, pieces("")}},
		{"chat", Wanted{Kind: Chat, LogProbs: true}, "", nil, [][]text.Piece{plain, pieces("")}},
		{"calls", Wanted{Kind: Chat, Usage: true, LogProbs: true}, "", divided, [][]text.Piece{reply, call}},
		{"thought", Wanted{Kind: Chat}, "", divided, [][]text.Piece{pieces("<think>a</think>", "")}},
		{"response", Wanted{Kind: Response, Repeated: repeated}, "", divided, [][]text.Piece{reply}},
		{"plain_response", Wanted{Kind: Response, Repeated: repeated}, "", nil, [][]text.Piece{plain}},
		{"empty_response", Wanted{Kind: Response, Repeated: repeated}, "", nil, [][]text.Piece{pieces("")}},
		{"cut_response", Wanted{Kind: Response, Repeated: repeated}, "", nil, [][]text.Piece{{{Text: "a", Finish: text.FinishLength, Stats: text.Stats{Generated: 1}}}}},
	} {
		for _, stream := range []bool{false, true} {
			for _, end := range []string{"", "_failed"} {
				name := fmt.Sprintf("%s%s", c.name, end)
				if c.want.Stream = stream; stream {
					name += "_stream"
				}
				hold := server.NewReservation()
				w := httptest.NewRecorder()
				a := New(server, w, "m<1>", c.want, hold)
				a.Use(m.Tokenizer())
				var failed error
				for i, list := range c.texts {
					if err := a.Next([]int{1, 2}, c.echo, c.split); err != nil {
						t.Fatal(err)
					}
					for k := range list {
						p := list[k]
						if end != "" && i == len(c.texts)-1 && k == len(list)-1 {
							p.Finish, p.Stats, failed = "", text.Stats{Prompt: 5, Generated: 3}, errors.New("no memory")
						}
						if err := a.Piece(&p, i == 0); err != nil {
							t.Fatal(err)
						}
					}
				}
				a.End(failed)
				if size := w.Header().Get("Content-Length"); !stream && size != fmt.Sprint(w.Body.Len()) {
					t.Errorf("%s: the length is %s, want %d", name, size, w.Body.Len())
				}
				hold.Release()
				checkGolden(t, name, fmt.Appendf(nil, "%d\n%s", w.Code, varying.ReplaceAll(w.Body.Bytes(), []byte("*"))))
			}
		}
	}
}

// checkGolden compares an answer with its file.
func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s\n%v", name, got, want, err)
	}
}

// repeated are members of a request.
var repeated = &Repeated{Metadata: map[string]string{"a": "<b>"}, Choice: json.RawMessage(`"auto"`), Tools: []int{}, Text: Text{Format: 1}, Temperature: 1, TopP: 0.5}
