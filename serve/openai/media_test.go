package openai_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

var pictures = filepath.Join("..", "..", "text", "testdata", "pictures")

func openPictures(context.Context) (*etrun.Program, error) {
	return etrun.Open(filepath.Join(pictures, "model.pte"), etrun.WithDelegates(all.Backends()...))
}

// seeing returns a server of a model that sees.
func seeing(t *testing.T) *peer {
	t.Helper()
	tok, err := tokenizer.Open(pictures)
	must(t, err)
	gemma, err := text.NamedTemplate("gemma")
	must(t, err)
	return newPeerOf(t, serve.Config{Open: openPictures}, openai.Config{Sessions: 4, Tokenizer: tok, Template: gemma})
}

// uri returns a picture as a data URI.
func uri(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(pictures, name))
	must(t, err)
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b)
}

// bare returns the base64 of a data URI.
func bare(uri string) string { return uri[strings.Index(uri, ",")+1:] }

// seen returns what the library answers to a question about pictures.
func seen(t *testing.T, question string, names ...string) string {
	t.Helper()
	prog, err := openPictures(t.Context())
	must(t, err)
	defer prog.Close()
	tok, err := tokenizer.Open(pictures)
	must(t, err)
	m, err := text.Load(t.Context(), prog, tok)
	must(t, err)
	defer m.Close()
	var parts []*text.Part
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(pictures, name))
		must(t, err)
		p, err := m.EncodePart(t.Context(), text.Picture, b)
		must(t, err)
		parts = append(parts, p)
	}
	gemma, err := text.NamedTemplate("gemma")
	must(t, err)
	s, err := m.NewSession(t.Context())
	must(t, err)
	defer s.Close()
	var answer strings.Builder
	for p, err := range s.Chat(t.Context(), gemma, []text.Message{text.UserMessage(question, parts...)}, text.Options{MaxTokens: 10, Parts: parts}) {
		must(t, err)
		answer.WriteString(p.Text)
	}
	return answer.String()
}

// TestPictures asks about pictures by chats, streams and responses.
func TestPictures(t *testing.T) {
	p := seeing(t)
	a, b := uri(t, "a.png"), uri(t, "b.jpg")
	one, two := seen(t, "What?", "a.png"), seen(t, "What?", "a.png", "b.jpg")
	for _, c := range []struct {
		name, path, body, want string
		cached                 int // tokens at least
	}{
		{"chat", "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":%q,"detail":"low"}},`+
			`{"type":"text","text":"What?"}]}],"max_tokens":10,"temperature":0}`, a), one, 0},
		{"again", "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":%q},`+
			`{"type":"text","text":"What?"}]}],"max_tokens":10,"temperature":0}`, a), one, 24},
		{"two pictures", "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":%q}},`+
			`{"type":"image_url","image_url":{"url":%q}},{"type":"text","text":"What?"}]}],"max_tokens":10,"temperature":0}`, a, b), two, 23},
		{"response", "/v1/responses", fmt.Sprintf(`{"input":[{"role":"user","content":[{"type":"input_image","image_url":%q,"detail":"auto"},`+
			`{"type":"input_text","text":"What?"}]}],"max_output_tokens":10,"temperature":0}`, a), one, 23},
		{"Ollama's chat", "/api/chat", fmt.Sprintf(`{"messages":[{"role":"user","content":"What?","images":[%q,%q]}],"stream":false,`+
			`"options":{"num_predict":10,"temperature":0}}`, bare(a), bare(b)), two, 0},
		{"Ollama's text", "/api/generate", fmt.Sprintf(`{"prompt":"What?","images":[%q],"stream":false,"options":{"num_predict":10,"temperature":0}}`,
			bare(a)), one, 0},
	} {
		status, data := ask(t, p, "POST", c.path, strings.Replace(c.body, "{", `{"model":"lm",`, 1))
		var got struct {
			Choices []struct{ Message struct{ Content string } }
			Output  []struct{ Content []struct{ Text string } }

			Message  struct{ Content string }
			Response string
			Usage    struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if status != http.StatusOK || json.Unmarshal(data, &got) != nil {
			t.Fatalf("%s: got %d %s", c.name, status, data)
		}
		answer := ""
		if got.Choices != nil {
			answer = got.Choices[0].Message.Content
		} else if answer = got.Message.Content + got.Response; got.Output != nil {
			answer = got.Output[0].Content[0].Text
		}
		if answer != c.want || got.Choices != nil && got.Usage.Details.Cached < c.cached {
			t.Errorf("%s: got %q, %d tokens reused, want %q, %d", c.name, answer, got.Usage.Details.Cached, c.want, c.cached)
		}
	}
	status, data := ask(t, p, "GET", "/v1/models/lm", "")
	if status != http.StatusOK || !strings.Contains(string(data), `"capabilities":["completion","chat","vision"]`) {
		t.Errorf("the model: got %d %s", status, data)
	}
}

// TestLargePicture sends a picture that is larger than the limit of texts, which remains for a model of texts.
func TestLargePicture(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 1200, 1000))
	for i := range img.Pix {
		img.Pix[i] = byte(rand.IntN(256))
	}
	var b bytes.Buffer
	must(t, png.Encode(&b, img))
	body := fmt.Sprintf(`{"model":"lm","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}],"max_tokens":1}`,
		base64.StdEncoding.EncodeToString(b.Bytes()))
	if status, data := ask(t, seeing(t), "POST", "/v1/chat/completions", body); status != http.StatusOK {
		t.Errorf("got %d %.300s", status, data)
	}
	if status, data := ask(t, newPeer(t, serve.Config{}), "POST", "/v1/chat/completions", body); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a model of texts: got %d %.300s, want 413", status, data)
	}
}

// TestRefusedMedia checks that what is no picture or sound, or cannot be had, is refused by name.
func TestRefusedMedia(t *testing.T) {
	sees, reads := seeing(t), newPeer(t, serve.Config{})
	picture := fmt.Sprintf(`{"type":"image_url","image_url":{"url":%q}}`, uri(t, "a.png"))
	bomb := base64.StdEncoding.EncodeToString(append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), 0x3b))
	silent := base64.StdEncoding.EncodeToString([]byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"))
	for _, c := range []struct {
		p                 *peer
		part, param, text string
	}{
		{sees, `{"type":"image_url","image_url":{"url":"https://example.org/cat.png"}}`, "messages.content.image_url", "nothing is fetched"},
		{sees, `{"type":"image_url","image_url":{"url":"data:image/png,plain"}}`, "messages.content.image_url", "data URI"},
		{sees, `{"type":"image_url","image_url":{"url":"data:image/png;base64,%%"}}`, "messages.content.image_url", "base64"},
		{sees, `{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}`, "messages.content.image_url", "base64"},
		{sees, `{"type":"image_url","image_url":{"url":"data:image/png;base64,JVBERg=="}}`, "messages.content.image_url", "unknown format"},
		{sees, `{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + bomb + `"}}`, "messages.content.image_url", "65535×65535 pixels"},
		{sees, `{"type":"image_url"}`, "messages.content.image_url", "without it"},
		{sees, `{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}}`, "messages.content.input_audio", "want wav or flac"},
		{sees, `{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`, "messages.content.input_audio", "WAVE or FLAC"},
		{sees, `{"type":"input_audio","input_audio":{"data":"` + silent + `","format":"wav"}}`, "messages.content.input_audio", "takes none"},
		{sees, `{"type":"file","file":{"file_id":"x"}}`, "messages[0].content[0].file", "not supported"},
		{sees, `{"type":"video_url","video_url":{"url":"x"}}`, "messages[0].content[0].video_url", "not supported"},
		{sees, `{"type":"image","text":"x"}`, "messages.content", "want text"},
		{reads, picture, "messages.content.image_url", "takes none"},
	} {
		status, data := ask(t, c.p, "POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":[`+c.part+`]}]}`)
		var got reply
		if status != http.StatusBadRequest || json.Unmarshal(data, &got) != nil || got.Error.Param == nil || *got.Error.Param != c.param ||
			!strings.Contains(got.Error.Message, c.text) {
			t.Errorf("%.80s: got %d %s, want 400 with %q and %q", c.part, status, data, c.param, c.text)
		}
	}
	for _, role := range []string{"system", "assistant", "tool"} {
		status, data := ask(t, sees, "POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":"x"},{"role":"`+role+
			`","tool_call_id":"x","content":[`+picture+`]},{"role":"user","content":"y"}]}`)
		if status != http.StatusBadRequest {
			t.Errorf("a picture of the %s: got %d %.200s, want 400", role, status, data)
		}
	}
	for _, path := range []string{"/apply-template", "/tokenize"} {
		status, data := ask(t, sees, "POST", path, `{"model":"lm","messages":[{"role":"user","content":[`+picture+`]}]}`)
		if status != http.StatusBadRequest || !slices.Contains(strings.Fields(string(data)), "picture,") {
			t.Errorf("%s: got %d %.200s, want 400 and the picture", path, status, data)
		}
	}
}
