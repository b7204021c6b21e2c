package text

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// mediaCase is a case of a corpus's cases.json: a prompt with parts, and the tokens that follow.
type mediaCase struct {
	ID, Kind string
	Files    struct{ Model, Tokenizer, Alternative string }
	Inputs   struct {
		Image, Audio, Prompt string
		Images               []string
	}
	Options struct {
		MaxTokens int      `json:"max_tokens"`
		Parts     []string `json:"prompt_parts"`
	}
	Expect struct {
		PromptTokens int `json:"prompt_tokens"`
		Tokens       []int
		Text         string
		Margins      []float64
	}
}

// engines are the ways in which programs are run.
var mediaEngines = map[string][]etrun.Option{
	"default":   {etrun.WithDelegates(all.Backends()...)},
	"lower off": {etrun.WithDelegates(all.Backends()...), etrun.WithLowering(etrun.LowerOff)},
	"go engine": {etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})},
}

// TestCorpusMedia continues prompts with pictures and sounds of a corpus, the folder of the environment variable CORPUS, and compares the
// tokens with PyTorch's.
func TestCorpusMedia(t *testing.T) {
	folder := os.Getenv("CORPUS")
	if folder == "" {
		t.Skip("CORPUS is not set")
	}
	for name, options := range mediaEngines {
		t.Run(name, func(t *testing.T) { checkMedia(t, folder, options) })
	}
}

func checkMedia(t *testing.T, folder string, options []etrun.Option) {
	data, err := os.ReadFile(filepath.Join(folder, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Cases []mediaCase }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range list.Cases {
		if c.Kind == "generate" {
			n++
			t.Run(c.ID, func(t *testing.T) { c.check(t, folder, options) })
		}
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

func (c *mediaCase) load(t *testing.T, folder string, options []etrun.Option) *Model {
	options = append(slices.Clone(options), etrun.WithMaxMemory(3<<30))
	p, err := etrun.Open(filepath.Join(folder, c.Files.Model), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	tok, err := tokenizer.Open(filepath.Join(folder, c.Files.Tokenizer))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(t.Context(), p, tok)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// prompt returns the tokens and the parts of the prompt.
func (c *mediaCase) prompt(t *testing.T, m *Model, folder string) (ids []int, parts []*Part) {
	pictures := c.Inputs.Images
	if c.Inputs.Image != "" {
		pictures = []string{c.Inputs.Image}
	}
	encode := func(medium Medium, name string) {
		file, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.EncodePart(t.Context(), medium, file)
		if err != nil {
			t.Fatal(err)
		}
		ids, parts = append(ids, p.Tokens()...), append(parts, p)
	}
	for _, s := range c.Options.Parts {
		switch {
		case strings.HasPrefix(s, "IMAGE"):
			encode(Picture, pictures[0])
			pictures = pictures[1:]
		case s == "AUDIO":
			encode(Sound, c.Inputs.Audio)
		default:
			list, err := m.Tokenizer().Encode(s, true)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, list...)
		}
	}
	return ids, parts
}

func (c *mediaCase) check(t *testing.T, folder string, options []etrun.Option) {
	m := c.load(t, folder, options)
	prompt, parts := c.prompt(t, m, folder)
	if len(prompt) != c.Expect.PromptTokens {
		t.Fatalf("prompt: got %d tokens, want %d", len(prompt), c.Expect.PromptTokens)
	}
	c.checkChat(t, m, prompt, parts)
	got, _, last, err := collect(sessionOf(t, m).GenerateTokens(t.Context(), prompt, Options{MaxTokens: c.Options.MaxTokens, Parts: parts}))
	if err != nil {
		t.Fatal(err)
	}
	c.compare(t, got, last.Finish)
}

// checkChat checks that a chat template makes the same prompt of a message with the parts.
func (c *mediaCase) checkChat(t *testing.T, m *Model, want []int, parts []*Part) {
	messages := []Message{{Role: "user", Content: c.Inputs.Prompt}}
	for _, p := range parts {
		messages[0].Parts = append(messages[0].Parts, Placed{0, p})
	}
	template, err := FindTemplate(m.tok)
	if strings.Contains(c.ID, "llava") {
		system, _, _ := strings.Cut(strings.TrimPrefix(c.Options.Parts[0], "<s>"), " USER: ")
		messages = append([]Message{{Role: "system", Content: system}}, messages...)
		template, err = NamedTemplate("llava")
	}
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := m.EncodeConversation(template, &Conversation{Messages: messages})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the prompt by the template %s: got %d, %v, want %d", template.Name(), tokensOf(got), err, tokensOf(want))
	}
	whole := ""
	for _, s := range c.Options.Parts {
		switch {
		case strings.HasPrefix(s, "IMAGE"):
			s = "<image>"
		case s == "AUDIO":
			s = "<audio>"
		}
		whole += s
	}
	if got, err = m.EncodeParts(whole, parts, true); err != nil || !slices.Equal(got, want) {
		t.Errorf("the prompt by placeholders: got %d, %v, want %d", tokensOf(got), err, tokensOf(want))
	}
}

// tokensOf returns tokens with -1 for each part.
func tokensOf(ids []int) (list []int) {
	for _, id := range ids {
		if id = max(id, -1); id >= 0 || len(list) == 0 || list[len(list)-1] >= 0 {
			list = append(list, id)
		}
	}
	return list
}

// compare compares tokens up to a first difference where the two best ones are too close.
func (c *mediaCase) compare(t *testing.T, got []int, finish Finish) {
	near := 0.001
	if strings.Contains(c.ID, "8da4w") {
		near = 0.7
	}
	want := c.Expect.Tokens
	if finish == FinishStop && len(want) == len(got)+1 {
		want = want[:len(got)] // without the one that ends the text
	}
	for i, id := range want {
		if i < len(got) && got[i] == id {
			continue
		}
		if c.Expect.Margins[i] < near {
			t.Logf("token %d differs, its margin is %g", i, c.Expect.Margins[i])
			return
		}
		t.Fatalf("token %d: got %d, want %d (margin %g)", i, got, c.Expect.Tokens, c.Expect.Margins[i])
	}
	if len(got) != len(want) {
		t.Fatalf("tokens: got %d, want %d", got, c.Expect.Tokens)
	}
}
