package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// textFile returns the path of a file of package text's tests: dynamic.pte is a language model with
// 256 logits and 32 positions, bytes.json its tokenizer.
func textFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "text", "testdata", name))
	must(t, err)
	return path
}

// inTextFolder changes to a folder with a model, tokenizer, template and prompt.
func inTextFolder(t *testing.T) {
	t.Helper()
	model, tok := textFile(t, "dynamic.pte"), textFile(t, "bytes.json")
	t.Chdir(t.TempDir())
	must(t, os.Symlink(model, "lm.pte"))
	must(t, os.Symlink(tok, "bytes.json"))
	write(t, "noise.bin", bytes.Repeat([]byte("noise "), 100))
	write(t, "plain.tmpl", []byte(`{"message": "{text} ", "roles": {"user": "", "assistant": ""}}`))
	write(t, "broken.tmpl", []byte(`{"message": "{text}{"}`))
}

// libraryText returns what the library generates.
func libraryText(t *testing.T, prompt string, o text.Options) string {
	t.Helper()
	tok, err := tokenizer.Open("bytes.json")
	must(t, err)
	prog, err := etrun.OpenSource(t.Context(), etrun.File("lm.pte"), etrun.WithDelegates(all.Backends()...))
	must(t, err)
	defer prog.Close()
	m, err := text.Load(t.Context(), prog, tok)
	must(t, err)
	defer m.Close()
	s, err := m.NewSession(t.Context())
	must(t, err)
	defer s.Close()
	var b strings.Builder
	for p, err := range s.Generate(t.Context(), prompt, o) {
		must(t, err)
		b.WriteString(p.Text)
	}
	return b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The command writes the text of the library, however it is asked.
func TestGenerateIsTheLibrary(t *testing.T) {
	inTextFolder(t)
	greedy := libraryText(t, "hello", text.Options{MaxTokens: 12, IgnoreEOS: true})
	penalized := libraryText(t, "hello", text.Options{MaxTokens: 12, IgnoreEOS: true, Sampling: text.Sampling{PresencePenalty: 1, FrequencyPenalty: 0.5}})
	drawn := libraryText(t, "hello", text.Options{MaxTokens: 12, IgnoreEOS: true, Sampling: text.Sampling{Temperature: 1.5, TopK: 40, TopP: 0.95, Seed: 7}})
	if greedy == drawn || greedy == "" {
		t.Fatalf("greedy %q, drawn %q: want two texts", greedy, drawn)
	}
	const common = "generate lm.pte --tokenizer bytes.json --ignore-eos -n 12"
	for _, c := range []struct {
		name, args, stdin, want string
	}{
		{"prompt", " --prompt hello", "", greedy},
		{"standard input", " --prompt -", "hello", greedy},
		{"echo", " --prompt hello --echo", "", "hello" + greedy},
		{"seed", " --prompt hello -t 1.5 --top-k 40 --top-p 0.95 --seed 7", "", drawn},
		{"penalties", " --prompt hello --presence-penalty 1 --frequency-penalty 0.5", "", penalized},
		{"seed again", " --prompt hello -t 1.5 --top-k 40 --top-p 0.95 --seed 7", "", drawn},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, notes bytes.Buffer
			if code := run(strings.Fields(common+c.args), strings.NewReader(c.stdin), &out, &notes); code != 0 {
				t.Fatalf("exit code %d: %s", code, notes.String())
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
			checkParts(t, "stderr", notes.String(), []string{"prompt of", "first token after", "12 tokens", "ended by --max-tokens"})
		})
	}
}

// candidate is a token with the logarithm of its probability.
type candidate struct {
	ID      int
	LogProb *float64
}

func TestGenerateJSON(t *testing.T) {
	inTextFolder(t)
	want := libraryText(t, "hello", text.Options{MaxTokens: 5, IgnoreEOS: true})
	var out, notes bytes.Buffer
	args := "generate lm.pte --tokenizer bytes.json --prompt hello --ignore-eos -n 5 --json --logprobs --top-logprobs 3"
	if code := run(strings.Fields(args), strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	var r struct {
		Schema, Text string
		Context      int
		Prompt       []int `json:"prompt_tokens"`
		Finish       text.Finish
		Tokens       []struct {
			candidate
			Top []candidate `json:"top_logprobs"`
		}
		Stats struct {
			Prompt    int `json:"prompt_tokens"`
			Generated int `json:"generated_tokens"`
		}
	}
	must(t, json.Unmarshal(out.Bytes(), &r))
	if r.Schema != "etrun.generate/1" || r.Text != want || r.Finish != text.FinishLength || r.Stats.Generated != 5 || r.Context != 32 {
		t.Errorf("got %+v, want the text %q", r, want)
	}
	if r.Stats.Prompt != len(r.Prompt) || len(r.Tokens) != 5 {
		t.Errorf("prompt of %d tokens, want %d; %d tokens, want 5", len(r.Prompt), r.Stats.Prompt, len(r.Tokens))
	}
	for i, tok := range r.Tokens {
		if len(tok.Top) != 3 || tok.LogProb == nil || tok.Top[0].ID != tok.ID || *tok.Top[0].LogProb != *tok.LogProb {
			t.Errorf("token %d: got %+v, want the most likely one and 3 candidates", i, tok)
		}
	}
}

// Tokens go in and out without a tokenizer.
func TestGenerateTokens(t *testing.T) {
	inTextFolder(t)
	var out, notes bytes.Buffer
	if code := run(strings.Fields("generate lm.pte --tokens 1,40,50 -n 4 --ignore-eos"), strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	if n := len(strings.Fields(out.String())); n != 4 || !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("got %q, want a line of 4 tokens", out.String())
	}
}

// Each line of a conversation gets the reply to all messages so far; /reset forgets them.
func TestGenerateChat(t *testing.T) {
	inTextFolder(t)
	chat := func(stdin string) []string {
		t.Helper()
		var out, notes bytes.Buffer
		args := "generate lm.pte --tokenizer bytes.json --chat --template plain.tmpl --ignore-eos -n 3"
		if code := run(strings.Fields(args), strings.NewReader(stdin), &out, &notes); code != 0 {
			t.Fatalf("exit code %d: %s", code, notes.String())
		}
		return slices.DeleteFunc(strings.SplitAfter(notes.String(), "\n"), func(s string) bool { return !strings.Contains(s, "prompt of") })
	}
	for _, c := range []struct {
		stdin string
		want  []string // lengths of the prompts
	}{
		{"ab\ncd\n", []string{"prompt of 3 ", "prompt of 1"}}, // the second one has the first and its reply
		{"ab\n/reset\ncd\n", []string{"prompt of 3 ", "prompt of 3 "}},
		{"ab\n\n/exit\ncd\n", []string{"prompt of 3 "}},
	} {
		got := chat(c.stdin)
		if len(got) != len(c.want) {
			t.Fatalf("%q: got %q, want %q", c.stdin, got, c.want)
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%q: reply %d: got %q, want %q in it", c.stdin, i, got[i], c.want[i])
			}
		}
	}
}

// TestGenerateParts continues prompts with pictures: in a chat, in places, and before a text.
func TestGenerateParts(t *testing.T) {
	const folder = "../../text/testdata/pictures/"
	image := []string{"--image", folder + "a.png", "--max-tokens", "6", "--json"}
	for _, c := range []struct {
		name   string
		args   []string
		prompt []int // -1 for each row of a picture, once
		text   string
	}{
		{"chat", append(image, "--chat", "-p", "What is in this image?"), []int{378, 379, 117, 115, 265, 10, 381, -1, 87, 104, 264, 272, 300, 306, 260, 288, 360,
			63, 380, 10, 379, 109, 111, 334, 10}, ""},
		{"in its place", append(image, "--special", "-p", "<bos><start_of_image><image>hi"), []int{378, 381, -1, 104, 105}, ""},
		{"before the text", append(image, "-p", "hi"), []int{381, -1, 104, 105}, ""},
		{"no picture", []string{"--max-tokens", "6", "--json", "-p", "<image>hi"}, nil, ""},
	} {
		var out, notes bytes.Buffer
		if code := run(append([]string{"generate", folder + "model.pte"}, c.args...), nil, &out, &notes); code != 0 {
			t.Fatalf("%s: exit code %d, %s", c.name, code, notes.String())
		}
		var got struct {
			Prompt []int                   `json:"prompt_tokens"`
			Tokens []struct{ ID int }      `json:"tokens"`
			Stats  struct{ Generated int } `json:"stats"`
		}
		must(t, json.Unmarshal(out.Bytes(), &got))
		want, rows := slices.Compact(slices.Clone(got.Prompt)), 0
		for _, id := range got.Prompt {
			if id == -1 {
				rows++
			}
		}
		if c.prompt != nil && (!slices.Equal(want, c.prompt) || rows != 16) || c.prompt == nil && rows != 0 || len(got.Tokens) != 6 {
			t.Errorf("%s: %d rows in the prompt %d, want 16 in %d; %d tokens", c.name, rows, want, c.prompt, len(got.Tokens))
		}
		if c.prompt != nil && !strings.Contains(notes.String(), "16 tokens: 120×90 pixels, resized to 56×56") {
			t.Errorf("%s: got notes %q", c.name, notes.String())
		}
	}
}

func TestGenerateErrors(t *testing.T) {
	pte, err := filepath.Abs(filepath.Join(root, "testdata", "pte"))
	must(t, err)
	encoders, err := filepath.Abs(filepath.Join(root, "text", "testdata", "encoders"))
	must(t, err)
	sees, err := filepath.Abs(filepath.Join(root, "text", "testdata", "pictures"))
	must(t, err)
	inTextFolder(t)
	for _, c := range []struct {
		name, args string
		code       int
		stderr     string
	}{
		{"no prompt", "lm.pte --tokenizer bytes.json", 2, "no prompt"},
		{"no tokenizer", "lm.pte --prompt x", 2, "--tokenizer FILE"},
		{"an image", "lm.pte --tokenizer bytes.json --prompt x --image SEES/a.png", 5, "no encoder"},
		{"audio", "lm.pte --tokenizer bytes.json --prompt x --audio SEES/a.png", 5, "no encoder"},
		{"an image that is not there", "SEES/model.pte --prompt x --image gone.png", 2, "gone.png"},
		{"no image", "SEES/model.pte --prompt x --image SEES/tokenizer.json", 5, "tokenizer.json: picture: "},
		{"an image for tokens", "SEES/model.pte --tokens 1 --image SEES/a.png", 2, "not for --tokens"},
		{"control tokens of a chat", "SEES/model.pte --chat --special -p x", 2, "--special with --chat"},
		{"a method of its own", "SEES/model.pte --method vision_encoder -p x", 4, "vision_encoder"},
		{"two prompts", "lm.pte --tokenizer bytes.json --prompt x --tokens 1", 2, "choose one"},
		{"no file", "lm.pte --tokenizer gone.bin --prompt x", 2, "gone.bin"},
		{"no tokenizer's file", "lm.pte --tokenizer noise.bin --prompt x", 4, "noise.bin: unsupported tokenizer"},
		{"no model", "gone.pte --tokenizer bytes.json --prompt x", 2, "gone.pte"},
		{"no language model", "PTE/two_conds.pte --tokenizer bytes.json --prompt x", 4, "not a language model"},
		{"an encoder", "ENCODERS/bert.pte --tokens 1", 4, "want etrun embed"},
		{"an encoder of one input", "ENCODERS/albert.pte --tokenizer ENCODERS --prompt x", 5, "want etrun embed"},
		{"no method", "lm.pte --method other --tokenizer bytes.json --prompt x", 4, "other"},
		{"prompt beyond the context", "lm.pte --tokenizer bytes.json --prompt " + strings.Repeat("x", 40), 5, "32"},
		{"token beyond the vocabulary", "lm.pte --tokens 1,5000", 5, "5000"},
		{"temperature", "lm.pte --tokens 1 --temperature -1", 5, "temperature"},
		{"penalty", "lm.pte --tokens 1 --presence-penalty NaN", 5, "presence-penalty"},
		{"drafts", "lm.pte --tokens 1 --lookup 4", 2, "logits of all"},
		{"negative drafts", "lm.pte --tokens 1 --lookup -1", 5, "lookup"},
		{"echo of tokens", "lm.pte --tokens 1 --echo", 2, "--echo"},
		{"bias", "lm.pte --tokens 1 --logit-bias x", 2, "ID=X"},
		{"bias of a token", "lm.pte --tokens 1 --logit-bias 999=1", 5, "999"},
		{"probabilities", "lm.pte --tokens 1 --logprobs", 2, "--json"},
		{"template", "lm.pte --tokenizer bytes.json --chat --template gone", 5, "gone"},
		{"broken template", "lm.pte --tokenizer bytes.json --chat --template broken.tmpl", 5, "broken.tmpl"},
		{"no template", "lm.pte --tokenizer bytes.json --chat", 5, "--template"},
		{"template without a conversation", "lm.pte --tokenizer bytes.json --prompt x --template gemma", 2, "--chat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, notes bytes.Buffer
			args := strings.NewReplacer("PTE", pte, "ENCODERS", encoders, "SEES", sees).Replace(c.args)
			code := run(strings.Fields("generate "+args), strings.NewReader(""), &out, &notes)
			if code != c.code || !strings.Contains(notes.String(), c.stderr) || out.Len() > 0 {
				t.Errorf("exit code %d, want %d; stdout %q; stderr %q, want %q in it", code, c.code, out.String(), notes.String(), c.stderr)
			}
		})
	}
}

// A text can fill the context to its end.
func TestGenerateToTheEnd(t *testing.T) {
	inTextFolder(t)
	var out, notes bytes.Buffer
	if code := run(strings.Fields("generate lm.pte --tokens 1,2,3 --ignore-eos"), strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	if n := len(strings.Fields(out.String())); n != 30 || !strings.Contains(notes.String(), "the context is full, 32 positions") {
		t.Errorf("%d tokens after 3 of 32 positions, want 30 (the last one is not computed); %s", n, notes.String())
	}
}

// near reports whether two numbers differ by rounding only.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

func TestBenchText(t *testing.T) {
	model := textFile(t, "dynamic.pte")
	var out, notes bytes.Buffer
	if code := run([]string{"bench", "--text", model, "--duration", "50ms", "--json", "--decode", "4"}, strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	var r struct {
		Schema  string
		Context int
		Runs    []struct {
			Prompt      int           `json:"prompt_tokens"`
			Generated   int           `json:"generated_tokens"`
			Prefill     stats.Summary `json:"prefill_ms"`
			PrefillRate float64       `json:"prefill_tokens_per_s"`
			DecodeRate  float64       `json:"decode_tokens_per_s"`
			TokenBytes  int64         `json:"bytes_per_token"`
			ReadRate    float64       `json:"decode_bytes_per_s"`
			Bandwidth   float64       `json:"memory_bytes_per_s"`
			Share       float64       `json:"bandwidth_share"`
		}
	}
	must(t, json.Unmarshal(out.Bytes(), &r))
	if r.Schema != "etrun.bench.text/1" || r.Context != 32 || len(r.Runs) != 2 {
		t.Fatalf("got %+v, want prompts of 1 and 16 tokens", r)
	}
	for i, n := range []int{1, 16} {
		if run := &r.Runs[i]; run.Prompt != n || run.Generated != 5 || run.Prefill.N < 3 || run.DecodeRate <= 0 || run.PrefillRate <= 0 {
			t.Errorf("got %+v, want a prompt of %d tokens", run, n)
		}
		run := &r.Runs[i]
		if run.TokenBytes <= 0 || i > 0 && run.TokenBytes <= r.Runs[0].TokenBytes {
			t.Errorf("prompt of %d tokens: %d bytes for each token", n, run.TokenBytes)
		}
		rate := float64(run.TokenBytes) * run.DecodeRate
		if run.Bandwidth < 1e7 || !near(run.ReadRate, rate) || !near(run.Share, rate/run.Bandwidth) {
			t.Errorf("prompt of %d tokens: %g of %g bytes/s, share %g", n, run.ReadRate, run.Bandwidth, run.Share)
		}
	}
	out.Reset()
	if code := run([]string{"bench", "--text", model, "--duration", "1ms", "--decode", "2", "--lengths", "1"}, strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	if text := out.String(); !strings.Contains(text, "GB/s read by") || !strings.Contains(text, "MB/token") || !strings.Contains(text, "%") {
		t.Errorf("got %s", text)
	}
	for args, want := range map[string]string{
		"--lengths 32":       "32 positions",
		"--lengths 0":        "--lengths",
		"--vs --threads=1":   "--vs",
		"--rate 5":           "--rate",
		"--input ones":       "--input",
		"--format=benchstat": "--format",
	} {
		out.Reset()
		notes.Reset()
		if code := run(append([]string{"bench", "--text", model}, strings.Fields(args)...), strings.NewReader(""), &out, &notes); code != 2 || !strings.Contains(notes.String(), want) {
			t.Errorf("%s: exit code %d, stderr %q, want 2 and %q", args, code, notes.String(), want)
		}
	}
}
