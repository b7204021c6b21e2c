package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/serve/openai/audio"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// speechFolder has models of speech.
var speechFolder = filepath.Join("..", "..", "speech", "testdata")

// speechConfig returns what a model of speech is made of.
func speechConfig(t testing.TB, name string) (c speech.Config) {
	t.Helper()
	folder := filepath.Join(speechFolder, name)
	var err error
	switch name {
	case "whisper", "transducer":
		c.Tokenizer, err = tokenizer.Open(folder)
		must(t, err)
	case "ctc":
		c.Vocabulary, err = os.ReadFile(filepath.Join(folder, "vocab.json"))
		must(t, err)
	}
	c.Instances = 2
	return c
}

func openSpeech(name string) func(context.Context) (*etrun.Program, error) {
	return func(context.Context) (*etrun.Program, error) {
		return etrun.Open(filepath.Join(speechFolder, name, "model.pte"), etrun.WithDelegates(all.Backends()...), etrun.WithReusableInputs())
	}
}

// newSpeechPeer returns the URL of a server of models of speech, and of "lm".
func newSpeechPeer(t testing.TB, o serve.Options) string {
	t.Helper()
	configs := []serve.Config{{Name: "lm", Open: open, Attach: openai.Attach(openai.Config{Tokenizer: bytesTokenizer(t)})}}
	for _, name := range []string{"whisper", "transducer", "ctc", "voice"} {
		configs = append(configs, serve.Config{Name: name, Open: openSpeech(name), Attach: audio.Attach(speechConfig(t, name))})
	}
	s, err := serve.New(o, configs...)
	must(t, err)
	must(t, s.LoadAll(t.Context()))
	server := httptest.NewServer(openai.New(s, openai.Options{}))
	t.Cleanup(func() {
		server.Close()
		must(t, s.Close())
	})
	return server.URL
}

// transcript returns what the library transcribes.
func transcript(t testing.TB, name string, o speech.Options) *speech.Transcript {
	t.Helper()
	p, err := openSpeech(name)(t.Context())
	must(t, err)
	defer p.Close()
	m, err := speech.Load(t.Context(), p, speechConfig(t, name))
	must(t, err)
	defer m.Close()
	file, err := os.ReadFile(filepath.Join(speechFolder, "speech.wav"))
	must(t, err)
	s, err := sound.Parse(file, 1<<30)
	must(t, err)
	r, err := m.Transcribe(t.Context(), s.Samples, o)
	must(t, err)
	return r
}

// TestNPMRecordings asks the server with the npm client of OpenAI's API, see testdata/npm/recordings.mjs.
func TestNPMRecordings(t *testing.T) {
	var got struct {
		Capabilities                             map[string][]string
		Text, Plain, SRT, VTT, Translation, Done string
		Usage                                    struct{ Seconds int }
		Deltas                                   []string
		Errors                                   map[string]npmError
		Verbose, Words                           struct {
			Task, Language, Text string
			Duration             float64
			Segments             []struct {
				Start, End float64
				Text       string
				Tokens     []int
			}
			Words []struct {
				Word       string
				Start, End float64
			}
		}
	}
	file, err := filepath.Abs(filepath.Join(speechFolder, "speech.wav"))
	must(t, err)
	runNPM(t, "openai", "recordings.mjs", &got, newSpeechPeer(t, serve.Options{}), file)
	plain, times := transcript(t, "whisper", speech.Options{Language: "en"}), transcript(t, "whisper", speech.Options{Language: "en", Times: true})
	want := strings.TrimSpace(plain.Text)
	var srt, vtt strings.Builder
	must(t, speech.WriteSRT(&srt, times.Segments))
	must(t, speech.WriteVTT(&vtt, times.Segments))
	for name, texts := range map[string][2]string{
		"json": {got.Text, want}, "text": {got.Plain, want + "\n"}, "done": {got.Done, want}, "deltas": {strings.Join(got.Deltas, ""), want},
		"srt": {got.SRT, srt.String()}, "vtt": {got.VTT, vtt.String()}, "verbose": {got.Verbose.Text, strings.TrimSpace(times.Text)},
		"translation": {got.Translation, strings.TrimSpace(transcript(t, "whisper", speech.Options{Translate: true}).Text)},
		"task":        {got.Verbose.Task, "transcribe"}, "language": {got.Verbose.Language, "english"},
	} {
		if texts[0] != texts[1] {
			t.Errorf("%s: %q, want %q", name, texts[0], texts[1])
		}
	}
	if len(got.Verbose.Segments) != len(times.Segments) || got.Verbose.Duration != times.Duration.Seconds() || got.Usage.Seconds != 3 {
		t.Errorf("verbose: %+v, usage %+v, want %d segments of %v", got.Verbose, got.Usage, len(times.Segments), times.Duration)
	}
	words := transcript(t, "ctc", speech.Options{}).Words
	for i, w := range got.Words.Words {
		if x := words[i]; len(got.Words.Words) != len(words) || w.Word != x.Text || w.Start != x.Start.Seconds() || w.End != x.End.Seconds() {
			t.Fatalf("words %+v, want %+v", got.Words.Words, words)
		}
	}
	if !reflect.DeepEqual(got.Capabilities, map[string][]string{"lm": {"completion"}, "whisper": {"transcription", "translation"},
		"transducer": {"transcription"}, "ctc": {"transcription"}, "voice": {"voice_detection"}}) || len(words) == 0 {
		t.Errorf("capabilities %v, %d words", got.Capabilities, len(words))
	}
	for name, e := range map[string]npmError{
		"model":    {"NotFoundError", 404, "model_not_found", "model", "invalid_request_error"},
		"kind":     {"BadRequestError", 400, "", "model", "invalid_request_error"},
		"word":     {"BadRequestError", 400, "", "timestamp_granularities", "invalid_request_error"},
		"language": {"BadRequestError", 400, "", "language", "invalid_request_error"},
		"format":   {"BadRequestError", 400, "", "response_format", "invalid_request_error"},
		"include":  {"BadRequestError", 400, "unsupported_parameter", "include", "invalid_request_error"},
		"hot":      {"BadRequestError", 400, "", "temperature", "invalid_request_error"},
	} {
		if got.Errors[name] != e {
			t.Errorf("%s: got %+v, want %+v", name, got.Errors[name], e)
		}
	}
}

// post sends a form of fields, "name=value" each, and a recording unless it is nil.
func postForm(t testing.TB, url string, file []byte, fields ...string) (status int, body string) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		must(t, form.WriteField(name, value))
	}
	if file != nil {
		part, err := form.CreateFormFile("file", "a.wav")
		must(t, err)
		_, err = part.Write(file)
		must(t, err)
	}
	must(t, form.Close())
	r, err := http.Post(url, form.FormDataContentType(), &b)
	must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(t, err)
	return r.StatusCode, string(text)
}

// Requests that cannot be done are refused with one sentence that names the field.
func TestRecordingsRefused(t *testing.T) {
	url := newSpeechPeer(t, serve.Options{BodyBytes: 1 << 20}) + "/v1/audio/"
	file, err := os.ReadFile(filepath.Join(speechFolder, "speech.wav"))
	must(t, err)
	rate := bytes.Clone(file)
	copy(rate[24:], "\x00\xca\x9a\x3b") // 10⁹ Hz
	none := bytes.Clone(file)
	copy(none[24:], "\x00\x00\x00\x00")
	wide := bytes.Clone(file)
	copy(wide[22:], "\xff\xff")
	for _, c := range []struct {
		name, path string
		file       []byte
		fields     []string
		status     int
		text       string
	}{
		{"no recording", "transcriptions", nil, []string{"model=ctc"}, 400, "file: missing"},
		{"no model of several", "transcriptions", file, nil, 400, "model: missing"},
		{"another model", "transcriptions", file, []string{"model=lm"}, 400, "does not transcribe"},
		{"an unknown field", "transcriptions", file, []string{"model=ctc", "color=red"}, 400, "color: there is no such field"},
		{"speakers", "transcriptions", file, []string{"model=ctc", "known_speaker_names[]=a"}, 400, "known_speaker_names"},
		{"chunks", "transcriptions", file, []string{"model=ctc", `chunking_strategy={"type":"server_vad"}`}, 400, "chunking_strategy: want auto"},
		{"diarized", "transcriptions", file, []string{"model=ctc", "response_format=diarized_json"}, 400, "finds no speakers"},
		{"times in json", "transcriptions", file, []string{"model=ctc", "timestamp_granularities[]=word"}, 400, "timestamp_granularities"},
		{"a stream of subtitles", "transcriptions", file, []string{"model=ctc", "stream=true", "response_format=srt"}, 400, "stream: with response_format srt"},
		{"a prompt", "transcriptions", file, []string{"model=ctc", "prompt=x"}, 400, "prompt: models of the family ctc"},
		{"no translation", "translations", file, []string{"model=ctc"}, 400, "does not translate"},
		{"a text of voices", "transcriptions", file, []string{"model=voice"}, 400, "want verbose_json"},
		{"no sound", "transcriptions", []byte("OggS"), []string{"model=ctc"}, 400, "file: malformed recording"},
		{"empty", "transcriptions", []byte{}, []string{"model=ctc"}, 400, "want a WAVE or FLAC file"},
		{"without samples", "transcriptions", file[:44], []string{"model=ctc"}, 400, "without samples"},
		{"truncated", "transcriptions", file[:30], []string{"model=ctc"}, 400, "file: malformed recording"},
		{"0 Hz", "transcriptions", none, []string{"model=ctc"}, 400, "0 samples per second"},
		{"10⁹ Hz", "transcriptions", rate, []string{"model=ctc"}, 400, "1000000000 samples per second"},
		{"65,535 channels", "transcriptions", wide, []string{"model=ctc"}, 400, "65535 channels"},
		{"too large", "transcriptions", make([]byte, 1<<20), []string{"model=ctc"}, 413, "1048576"},
	} {
		status, text := postForm(t, url+c.path, c.file, c.fields...)
		var e struct{ Error struct{ Message string } }
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != c.status || !strings.Contains(e.Error.Message, c.text) || strings.Contains(e.Error.Message, "\n") {
			t.Errorf("%s: status %d, %s, %v, want %d with %q", c.name, status, text, err, c.status, c.text)
		}
	}
	r, err := http.Post(url+"transcriptions", "application/json", strings.NewReader("{}"))
	must(t, err)
	r.Body.Close()
	if r.StatusCode != 400 {
		t.Errorf("JSON: status %d", r.StatusCode)
	}
	if status, text := postForm(t, url+"transcriptions", file, "model=voice", "response_format=verbose_json"); status != 200 || !strings.Contains(text, `"segments":[{"id":0`) {
		t.Errorf("voices: %d, %s", status, text)
	}
	if status, text := postForm(t, strings.TrimSuffix(url, "/audio/")+"/completions", nil); status == 200 {
		t.Errorf("a form of another path: %d, %s", status, text)
	}
}

// Recordings of several clients are transcribed at the same time.
func TestRecordingsTogether(t *testing.T) {
	url := newSpeechPeer(t, serve.Options{}) + "/v1/audio/transcriptions"
	file, err := os.ReadFile(filepath.Join(speechFolder, "speech.wav"))
	must(t, err)
	want := strings.TrimSpace(transcript(t, "transducer", speech.Options{}).Text)
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			if status, text := postForm(t, url, file, "model=transducer", "response_format=text"); status != 200 || text != want+"\n" {
				t.Errorf("status %d, %q, want %q", status, text, want)
			}
		})
	}
	wait.Wait()
}
