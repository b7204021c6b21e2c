package openai_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// stressTime is how long TestManyClients sends requests to each model, two seconds without it, half of one with -short.
const stressTime = "ETRUN_TEXT_CHURN"

const (
	stressClients = 32  // at once
	reloadAfter   = 100 // answers the model is loaded again
)

// stressModel is a language model whose texts are computed together.
type stressModel struct {
	name      string
	program   func() ([]byte, error)
	tokenizer tokenizer.Tokenizer
	// chunk is 1 for 8-bit activations: what they are rounded to can depend on how the beginning of a text was computed.
	chunk int
}

// numbers are those of log-probabilities, whose last bits depend on that, too; ids of calls are random.
var (
	numbers = regexp.MustCompile(`-?[0-9]+\.[0-9]+(e-?[0-9]+)?`)
	ids     = regexp.MustCompile(`"(call_)?id":"[^"]*"`)
)

// stressModels are those of the tests, and of the folder CORPUS.
func stressModels(t *testing.T) []stressModel {
	file := func(path ...string) func() ([]byte, error) {
		return func() ([]byte, error) { return os.ReadFile(filepath.Join(path...)) }
	}
	wide := ptetest.Transformer{Layers: 2, Dim: 64, Heads: 4, Vocabulary: 256, Context: 600, Seed: 3}
	list := []stressModel{
		{"8da4w", file("..", "..", "text", "testdata", "dynamic.pte"), bytesTokenizer(t), 1},
		{"transformer", func() ([]byte, error) { return wide.File(), nil }, bytesTokenizer(t), 0},
	}
	if corpus := os.Getenv("CORPUS"); corpus != "" {
		tok, err := tokenizer.Open(filepath.Join(corpus, "text", "tok512.bin"))
		must(t, err)
		list = append(list, stressModel{"stories260k", file(corpus, "text", "stories260k_8da4w.pte"), tok, 1},
			stressModel{"smollm", file(corpus, "fresh", "smollm_10l_8da4w_opt", "xnnpack.pte"), wordsTokenizer(t, 8192), 1})
	}
	return list
}

// wordsTokenizer has a token for each byte, and others that only models choose.
func wordsTokenizer(t *testing.T, n int) tokenizer.Tokenizer {
	data, err := os.ReadFile(filepath.Join("..", "..", "text", "testdata", "bytes.json"))
	must(t, err)
	var file map[string]any
	must(t, json.Unmarshal(data, &file))
	vocabulary := file["model"].(map[string]any)["vocab"].(map[string]any)
	for id := len(vocabulary); id < n; id++ {
		vocabulary[fmt.Sprintf("w%d", id)] = id
	}
	data, err = json.Marshal(file)
	must(t, err)
	tok, err := tokenizer.Parse(data)
	must(t, err)
	return tok
}

// TestManyClients sends requests of all kinds from many clients, some of which leave in the middle of an answer, or do not read
// it for a while, while the model is loaded again. Every answer is that of the request alone, none is lost, and nothing remains: neither memory, nor sessions, nor goroutines.
func TestManyClients(t *testing.T) {
	for _, m := range stressModels(t) {
		t.Run(m.name, func(t *testing.T) {
			s := newStress(t, m)
			s.run(t)
		})
	}
}

// stress is a server under load.
type stress struct {
	*peer
	requests []*asked
	exact    bool             // also the last bits of log-probabilities
	sessions atomic.Int64     // that are open
	slow     *httptest.Server // the same one, whose connections buffer few bytes
	paused   chan struct{}    // clients that do not read now
}

// newStress serves a model.
func newStress(t *testing.T, m stressModel) *stress {
	t.Helper()
	data, err := m.program()
	must(t, err)
	open := func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, etrun.Bytes("lm.pte", data), etrun.WithDelegates(all.Backends()...))
	}
	s := &stress{requests: requests(contextOf(t, open, m.tokenizer)), exact: m.chunk == 1, paused: make(chan struct{}, stressClients/4)}
	tmpl, err := text.NewJinjaTemplate("own", `{% for m in messages %}{{ m.content }}|{% endfor %}{% if tools %}{# "parameters" #}{% endif %}`, "", "")
	must(t, err)
	const long = 10 * time.Minute // a machine that stands still fails no client
	s.peer = newPeerWith(t, serve.Options{BodyTimeout: long},
		serve.Config{Open: open, Instances: stressClients, Queue: stressClients, Timeout: long},
		openai.Config{Tokenizer: m.tokenizer, Template: tmpl, Load: []text.Option{text.WithChunk(m.chunk)}, Sessions: stressClients + 8,
			Observe: func(n int, _ int64) { s.sessions.Add(int64(n)) }})
	s.slow = slowServer(s.http.Config.Handler)
	t.Cleanup(s.slow.Close)
	return s
}

// fewBytes is the size of the buffers of a slow connection: an answer does not fit, so that the server waits for its client.
const fewBytes = 1 << 11

// slowServer returns a server with small buffers, and a client that has them, too.
func slowServer(h http.Handler) *httptest.Server {
	slow := httptest.NewUnstartedServer(h)
	slow.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(fewBytes) // with larger ones, less is tested
		return ctx
	}
	slow.Start()
	slow.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_ = c.(*net.TCPConn).SetReadBuffer(fewBytes)
		}
		return c, err
	}
	return slow
}

// pausedReader is a reader of a client that calls pause after a number of bytes.
type pausedReader struct {
	io.Reader
	after int
	pause func()
}

func (r *pausedReader) Read(p []byte) (int, error) {
	if r.after <= 0 && r.pause != nil {
		r.pause()
		r.pause = nil
	}
	n, err := r.Reader.Read(p[:min(len(p), fewBytes/4)])
	r.after -= n
	return n, err
}

// pause waits for another answer, whose client does not wait. Some of the clients must read, so that the others get that answer.
func (s *stress) pause(t *testing.T, random *rand.Rand) func() {
	return func() {
		select {
		case s.paused <- struct{}{}:
			defer func() { <-s.paused }()
		default:
			return
		}
		a := s.requests[random.IntN(len(s.requests))]
		if answer, err := s.ask(t.Context(), a, nil, nil); err != nil || answer != a.answer {
			t.Errorf("%.200s: got %.300q and %v, alone %.300q", a.body, answer, err, a.answer)
		}
	}
}

// contextOf returns the number of positions of a program whose texts are computed together.
func contextOf(t *testing.T, open func(context.Context) (*etrun.Program, error), tok tokenizer.Tokenizer) int {
	t.Helper()
	prog, err := open(t.Context())
	must(t, err)
	defer prog.Close()
	method, err := prog.Load(t.Context(), "forward")
	must(t, err)
	defer method.Close()
	if batch := method.Report().Batch; batch.Batched == 0 {
		t.Fatalf("no texts are computed together: %s", batch.Reason)
	}
	m, err := text.Load(t.Context(), prog, tok)
	must(t, err)
	defer m.Close()
	return m.Info().Context
}

// requests are of all kinds, for a model with a number of positions.
func requests(context int) (list []*asked) {
	context = min(context, 640)
	add := func(path, prompt string, members ...string) {
		body := fmt.Sprintf(`{"prompt":%q,"seed":%d`, prompt, len(list))
		if path == asChat {
			body = fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"seed":%d`, prompt, len(list))
		}
		body = strings.Join(append([]string{body, fmt.Sprintf(`"max_tokens":%d`, min(context/4, 40))}, members...), ",")
		list = append(list, &asked{path: path, body: body + "}"}, &asked{path: path, body: body + `,"stream":true}`, stream: true})
	}
	const greedy, drawn = `"temperature":0`, `"temperature":1.5`
	long := strings.Repeat("a long prompt, ", context)[:context*5/8]
	for _, path := range []string{asCompletion, asChat} {
		for i := range 4 {
			add(path, "shared beginnings"[:5+4*(i/2)]+strings.Repeat("x", i), greedy)
		}
		add(path, "hello", drawn, `"n":3`)
		add(path, long, drawn, `"top_p":0.9`)
		add(path, long[1:], greedy, `"n":2`)
		add(path, "shared", drawn, `"top_k":20`, `"min_p":0.01`)
		add(path, "stop", drawn, `"stop":["e","\n"]`, `"ignore_eos":true`)
		add(path, "bias", drawn, `"logit_bias":{"101":-100,"32":5,"97":2.5}`, `"repetition_penalty":1.2`, `"repeat_last_n":5`)
		add(path, "penalties", drawn, `"presence_penalty":1`, `"frequency_penalty":0.5`, `"stop_token_ids":[0,10]`)
		add(path, "a", drawn, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"enum":[1,"a",null,[2]]}}}`)
		add(path, "b", drawn, `"regex":"(yes|no|[0-9]{1,4})"`)
		add(path, "c", greedy, `"guided_choice":["red","green","blue"]`, `"n":2`)
	}
	for _, more := range []string{`"tool_choice":"required"`, `"max_tokens":6`, `"max_tokens":5,"tool_choice":"none"`} {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"q"}],"seed":%d,%s%s`, len(list), more, oneTool)
		list = append(list, &asked{path: asChat, body: body + "}"}, &asked{path: asChat, body: body + `,"stream":true}`, stream: true})
	}
	add(asCompletion, "logs", drawn, `"logprobs":3`)
	add(asChat, "logs", greedy, `"logprobs":true`, `"top_logprobs":2`)
	for _, more := range []string{fmt.Sprintf(`"max_output_tokens":%d`, min(context/4, 40)), `"text":{"format":{"type":"json_schema","schema":{"const":7}}}`,
		`"tool_choice":"required","tools":[{"type":"function","name":"f"}]`} {
		body := `{"input":"q",` + greedy + "," + more
		list = append(list, &asked{path: asResponse, body: body + "}"}, &asked{path: asResponse, body: body + `,"stream":true}`, stream: true})
	}
	return append(list, &asked{path: asCompletion, body: `{"prompt":["one","two",[51,52,53]],"n":2,"seed":9,"max_tokens":5}`})
}

// asked is a request, and what it answers alone.
type asked struct {
	path, body string
	stream     bool
	answer     string
}

// run sends the requests alone, and then from many clients until its time is over.
func (s *stress) run(t *testing.T) {
	for range 2 { // the second time a session has the tokens of the prompt, as later ones may
		for _, a := range s.requests {
			answer, err := s.ask(t.Context(), a, nil, nil)
			must(t, err)
			if a.answer != "" && answer != a.answer {
				t.Errorf("%.200s: alone %.300q, then %.300q", a.body, a.answer, answer)
			}
			a.answer = answer
		}
	}
	d := time.Duration(cases.Of(1, 4)) * time.Second / 2
	if long := os.Getenv(stressTime); long != "" {
		var err error
		d, err = time.ParseDuration(long)
		must(t, err)
	}
	s.askAll(t, d/4) // everything has been used once
	before := s.memory(t)
	goroutines := runtime.NumGoroutine()
	answers, left := s.askAll(t, d)
	if n := s.sessions.Load(); n > stressClients+8 {
		t.Errorf("%d sessions are open", n)
	}
	after := s.memory(t)
	t.Logf("%d answers, %d clients left; %v, then %v", answers, left, before, after)
	if d >= 30*time.Second && after.isMore(before) {
		t.Errorf("memory grew from %v to %v", before, after)
	}
	await.True(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := s.server.Model("lm").Waiting(); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	all := s.server.NewReservation()
	defer all.Release()
	if err := all.Grow(s.server.BusyBytes()); err != nil {
		t.Error("bytes of requests are still counted")
	}
}

// askAll sends the requests of many clients for a time, in random order, and at least two by each. Some clients leave.
func (s *stress) askAll(t *testing.T, d time.Duration) (answers, left int64) {
	var clients sync.WaitGroup
	var complete, cancelled atomic.Int64
	until := time.Now().Add(d)
	for client := range stressClients {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(client)))
			for n := 0; n < 2 || time.Now().Before(until); n++ {
				a, leave := s.requests[random.IntN(len(s.requests))], random
				if random.IntN(4) > 0 {
					leave = nil
				}
				var pause func()
				if random.IntN(8) == 0 {
					pause = s.pause(t, random)
				}
				answer, err := s.ask(t.Context(), a, leave, pause)
				switch {
				case errors.Is(err, errLeft) && strings.HasPrefix(a.answer, answer):
					cancelled.Add(1)
				case err != nil && !errors.Is(err, errLeft):
					t.Errorf("client %d: %.200s: %v", client, a.body, err)
				case answer != a.answer:
					t.Errorf("client %d: %.200s: got %.300q, alone %.300q", client, a.body, answer, a.answer)
				case complete.Add(1)%reloadAfter == 0: // beside the others
					if err := s.server.Model("lm").Load(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	clients.Wait()
	s.http.Client().CloseIdleConnections()
	s.slow.Client().CloseIdleConnections()
	return complete.Load(), cancelled.Load()
}

// errLeft is the end of an answer whose client has left.
var errLeft = errors.New("the client has left")

// ask returns the answer to a request without what is another one each time. With leave the client leaves at a random time:
// the answer to a stream of one text is then a beginning. A slow client calls pause after some bytes.
func (s *stress) ask(ctx context.Context, a *asked, leave *rand.Rand, pause func()) (answer string, err error) {
	events := -1
	if leave != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(leave.IntN(100))*time.Millisecond)
		defer cancel()
		events = leave.IntN(20)
	}
	server := s.http
	if pause != nil {
		server = s.slow
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+a.path, strings.NewReader(a.body))
	if err != nil {
		return "", err
	}
	left := func(err error) error {
		if leave != nil && ctx.Err() != nil {
			return errLeft
		}
		return err
	}
	got, err := server.Client().Do(r)
	if err != nil {
		return "", left(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(got.Body)
		return "", fmt.Errorf("%d %s", got.StatusCode, text)
	}
	body := &pausedReader{got.Body, fewBytes / 2, pause}
	if a.stream {
		answer, err = readEvents(body, events)
	} else {
		answer, err = readAnswer(body)
	}
	answer = ids.ReplaceAllString(answer, `"id":""`)
	if !s.exact {
		answer = numbers.ReplaceAllString(answer, "#")
	}
	return answer, left(err)
}

// readAnswer returns the choices of an answer, and its number of tokens.
func readAnswer(r io.Reader) (string, error) {
	var x struct {
		Choices, Output json.RawMessage
		Usage           struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Input      int `json:"input_tokens"`
			Output     int `json:"output_tokens"`
		}
	}
	data, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(data, &x)
	}
	if err != nil {
		return "", fmt.Errorf("%w in %.200q", err, data)
	}
	return fmt.Sprintf("%s%s %v", x.Choices, x.Output, x.Usage), nil
}

// readEvents returns the texts of a stream: of each part its index, text and end. It leaves after a number of events, if
// that is not negative.
func readEvents(r io.Reader, events int) (string, error) {
	var all strings.Builder
	for lines := bufio.NewScanner(r); ; events-- {
		if events == 0 {
			return all.String(), errLeft
		}
		line := ""
		for (line == "" || strings.HasPrefix(line, "event: ")) && lines.Scan() {
			line = lines.Text()
		}
		switch {
		case line == "":
			return all.String(), cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
		case line == "data: [DONE]":
			return all.String() + "done", nil
		}
		var x struct {
			Choices, Error json.RawMessage
			Type, Delta    string
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &x); err != nil || x.Error != nil {
			return all.String(), fmt.Errorf("event %q: %v", line, err)
		}
		all.Write(x.Choices)
		all.WriteString(x.Delta)
		switch x.Type {
		case "response.completed", "response.incomplete":
			return all.String() + x.Type, nil
		case "response.failed":
			return all.String(), errors.New(line)
		}
	}
}

// memory is that of this process.
type memory struct{ heap, resident int }

func (m memory) String() string {
	return fmt.Sprintf("%d KB on the heap, %d KB resident", m.heap>>10, m.resident>>10)
}

// isMore reports whether memory has grown by more than chance.
func (m memory) isMore(than memory) bool {
	return m.heap > than.heap+than.heap/4+4<<20 || m.resident > than.resident+than.resident/8+6<<20
}

// memory returns the memory with a model that has been loaded again, which has the session of its test only.
func (s *stress) memory(t *testing.T) memory {
	t.Helper()
	must(t, s.server.Model("lm").Load(t.Context()))
	if n := s.sessions.Load(); n != 1 {
		t.Errorf("%d sessions are open after a load", n)
	}
	runtime.GC() // finds what finalizers free
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	self, err := procfs.Self()
	must(t, err)
	stat, err := self.Stat()
	must(t, err)
	return memory{int(m.HeapAlloc), stat.ResidentMemory()}
}
