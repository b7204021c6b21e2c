package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

func TestBenchAudio(t *testing.T) {
	const folder = "../../speech/testdata/"
	for _, name := range []string{"whisper", "transducer", "ctc"} {
		var out, notes bytes.Buffer
		if code := run([]string{"bench", folder + name + "/model.pte", "--audio", folder + "speech.wav", "--duration", "1ms", "--json"}, nil, &out, &notes); code != 0 {
			t.Fatalf("%s: %s", name, notes.String())
		}
		var r struct {
			Family string
			Runs   []struct {
				Tokens int
				Speed  float64       `json:"audio_s_per_s"`
				First  stats.Summary `json:"first_token_ms"`
				Took   stats.Summary `json:"took_ms"`
			}
			Process processBytes `json:"process_bytes"`
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Family != name || len(r.Runs) != 1 || r.Runs[0].Speed <= 0 || r.Runs[0].Tokens == 0 ||
			r.Runs[0].First.P50 <= 0 || r.Runs[0].First.P50 > r.Runs[0].Took.P50 || r.Process.PeakResident == 0 {
			t.Errorf("%s: %s, %v", name, out.String(), err)
		}
	}
	var out, notes bytes.Buffer
	if code := run([]string{"bench", folder + "ctc/model.pte", "--audio", folder + "speech.wav", "--rate", "3"}, nil, &out, &notes); code != 2 {
		t.Errorf("--rate: exit code %d, %s", code, notes.String())
	}
}

func TestTranscribe(t *testing.T) {
	const folder = "../../speech/testdata/"
	folders := strings.NewReplacer("HERE", folder, "EMPTY", t.TempDir())
	for _, c := range []struct {
		name, args string
		code       int
		out, note  string
	}{
		{"whisper", "HEREwhisper/model.pte --audio HEREspeech.wav --language en --all-tokens", 0, "desat", "2.7"},
		{"a tokenizer elsewhere", "HEREtransducer/model.pte -a HEREspeech.wav --tokenizer HEREtransducer/tokenizer.model", 0, " ", ""},
		{"voice", "HEREvoice/model.pte -a HEREspeech.wav", 0, "speech\n", ""},
		{"standard input", "HEREctc/model.pte -a -", 0, "Z", "16000 Hz"},
		{"two recordings", "HEREctc/model.pte -a HEREspeech.wav -a HEREspeech.wav", 0, folder + "speech.wav:\n", ""},
		{"subtitles", "HEREwhisper/model.pte -a HEREspeech.wav --format vtt", 0, "WEBVTT\n\n00:00:", ""},
		{"subtitles of two", "HEREctc/model.pte -a HEREspeech.wav -a x.wav --format srt", 2, "", "one: a file of subtitles"},
		{"no recording", "HEREctc/model.pte", 2, "", "want --audio FILE"},
		{"another format", "HEREctc/model.pte -a x --format mp3", 2, "", "want one of text, json, srt, vtt"},
		{"no such recording", "HEREctc/model.pte -a none.wav", 2, "", "none.wav"},
		{"a picture", "HEREctc/model.pte -a ../../testdata/digits/samples/3/03.png", 2, "", "want a WAVE or FLAC file"},
		{"a language of none", "HEREctc/model.pte -a HEREspeech.wav --language en", 2, "", "a language"},
		{"another language", "HEREwhisper/model.pte -a HEREspeech.wav --language xx", 2, "", "want one of en, zh"},
		{"no tokenizer", "HEREwhisper/model.pte -a HEREspeech.wav --tokenizer EMPTY", 4, "", "tokenizer"},
		{"what a voice detector takes for speech", "HEREctc/model.pte -a HEREspeech.wav --vad HEREvoice/model.pte", 0, "", ""},
		{"no voice detector", "HEREctc/model.pte -a HEREspeech.wav --vad HEREctc/model.pte", 4, "", "not a program of speech"},
		{"another helper", "HEREctc/model.pte -a HEREspeech.wav --speakers HEREvoice/model.pte", 2, "", "--speakers HEREvoice/model.pte: a program of the family voice, want speakers"},
		{"a stream", "HEREctc/model.pte -a - --stream", 0, "Z", ""},
		{"a stream of several", "HEREctc/model.pte -a x.wav -a y.wav --stream", 2, "", "want one recording"},
		{"another program", "../../testdata/digits/portable.pte -a HEREspeech.wav", 4, "", "not a program of speech"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := os.Open(folder + "speech.wav")
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var out, notes bytes.Buffer
			code := run(strings.Fields("transcribe "+folders.Replace(c.args)), in, &out, &notes)
			if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(notes.String(), folders.Replace(c.note)) {
				t.Errorf("exit code %d, want %d; output %q, want %q; notes %q, want %q", code, c.code, out.String(), c.out, notes.String(), c.note)
			}
		})
	}
	in, err := os.Open(folder + "speech.wav")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var lines, notes bytes.Buffer
	if code := run([]string{"transcribe", folder + "ctc/model.pte", "-a", "-", "--stream", "--json"}, in, &lines, &notes); code != 0 {
		t.Fatal(notes.String())
	}
	final := 0
	for d := json.NewDecoder(&lines); d.More(); {
		var p struct {
			Start, End float64
			Final      bool
		}
		if err := d.Decode(&p); err != nil || p.End <= p.Start {
			t.Fatalf("%+v, %v", p, err)
		}
		if p.Final {
			final++
		}
	}
	if final == 0 {
		t.Error("no final text")
	}
	var out bytes.Buffer
	notes.Reset()
	var r struct {
		Family     string
		Recordings []struct{ Words, Segments []any }
	}
	if code := run([]string{"transcribe", folder + "transducer/model.pte", "-a", folder + "speech.wav", "--json"}, nil, &out, &notes); code != 0 {
		t.Fatal(notes.String())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Family != "transducer" || len(r.Recordings) != 1 || len(r.Recordings[0].Words) == 0 || len(r.Recordings[0].Segments) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
