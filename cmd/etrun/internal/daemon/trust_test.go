package daemon

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/runtime/trace"
)

const (
	externalProgram = "../../../../testdata/pte/external_weights.pte"
	externalData    = "../../../../testdata/pte/external_weights.ptd"
)

// signer signs files for a test.
type signer struct {
	t       *testing.T
	public  minisign.PublicKey
	private minisign.PrivateKey
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{t, public, private}
}

// sign writes the signature of a file.
func (s *signer) sign(path string) {
	s.t.Helper()
	read := minisign.NewReader(bytes.NewReader(s.read(path)))
	if _, err := io.Copy(io.Discard, read); err != nil {
		s.t.Fatal(err)
	}
	s.write(path+".minisig", read.Sign(s.private))
}

func (s *signer) read(path string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *signer) write(path string, b []byte) {
	s.t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// copied writes a signed copy of a file.
func (s *signer) copied(folder, name, from string) string {
	path := filepath.Join(folder, name)
	s.write(path, s.read(from))
	s.sign(path)
	return path
}

// trusted returns a model with signed files, and all of them.
func (s *signer) trusted(folder string, more ...string) (m *Model, files []string) {
	s.t.Helper()
	files = []string{s.copied(folder, "m.pte", externalProgram), s.copied(folder, "m.ptd", externalData),
		s.copied(folder, "again.ptd", externalData)}
	words := []string{"--data", files[1], "--data", files[2]}
	if !slices.Contains(more, "--isolate") {
		s.write(filepath.Join(folder, "q.json"), []byte("[]"))
		files = append(files, filepath.Join(folder, "q.json"))
		s.sign(files[3])
		words = append(words, "--qparams", files[3])
	}
	return s.flags("m", files[0], append(words, more...)), files
}

// flags returns a model of a command line with --trust.
func (s *signer) flags(name, path string, words []string) *Model {
	s.t.Helper()
	m := model(name, path)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	m.Options, m.Limits = session.Options{}, DefaultLimits()
	m.Options.AddFlags(flags)
	m.Limits.AddFlags(flags)
	if err := flags.Parse(append(words, "--trust", s.public.String(), "--threads", "1")); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// changed flips a bit near the end of a file, or adds a byte.
func changed(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < 600 {
		return append(b, ' ')
	}
	b[len(b)-100] ^= 1
	return b
}

// faults are what may be wrong with a file or its signature; other is another signed file.
var faults = []struct {
	name string
	make func(s *signer, path, other string)
	want string // in the error, which names the file
}{
	{"changed", func(s *signer, path, _ string) { s.write(path, changed(s.read(path))) }, "not a signature"},
	{"without a signature", func(s *signer, path, _ string) {
		if err := os.Remove(path + ".minisig"); err != nil {
			s.t.Fatal(err)
		}
	}, "requires a signature"},
	{"with another file's signature", func(s *signer, path, other string) {
		s.write(path+".minisig", s.read(other+".minisig"))
	}, "not a signature"},
	{"with another key's signature", func(s *signer, path, _ string) { newSigner(s.t).sign(path) }, "not a signature"},
	{"with a damaged signature", func(s *signer, path, _ string) {
		b := s.read(path + ".minisig")
		b[len(b)/2] ^= 1
		s.write(path+".minisig", b)
	}, "not a signature"},
}

// TestTrustEachFile checks that each file that determines answers needs its own signature, however
// files are read, and that the digests of all are logged.
func TestTrustEachFile(t *testing.T) {
	for _, more := range [][]string{nil, {"--mmap"}, {"--isolate"}, {"--isolate", "--mmap"}} {
		if slices.Contains(more, "--isolate") && !canIsolate {
			continue
		}
		s := newSigner(t)
		folder := t.TempDir()
		m, files := s.trusted(folder, more...)
		r := start(t, func(d *Daemon) { d.Control = true }, m)
		line := r.log.lines("model loaded")[0]
		logged, _ := line["files"].(map[string]any)
		for _, path := range files {
			if digest, _ := logged[path].(string); len(digest) != 64 || digest == line["sha256"] {
				t.Errorf("%v: the log has %v of %s, and %v of all", more, logged[path], path, line["sha256"])
			}
		}
		for i, path := range files {
			for _, f := range faults {
				file, signature := s.read(path), s.read(path+".minisig")
				f.make(s, path, files[(i+1)%len(files)])
				if f.name == "with another file's signature" && bytes.Equal(s.read(path+".minisig"), signature) || i == 1 &&
					f.name == "with another file's signature" {
					s.write(path+".minisig", s.read(files[0]+".minisig")) // the two data files are equal
				}
				code, text, _ := r.ask("POST", "/v2/repository/models/m/load", "")
				if code != 500 || !strings.Contains(text, f.want) || !strings.Contains(text, filepath.Base(path)) {
					t.Errorf("%v: %s %s: %d %s", more, path, f.name, code, text)
				}
				s.write(path, file)
				s.write(path+".minisig", signature)
			}
		}
		if code, text, _ := r.ask("POST", "/v2/repository/models/m/load", ""); code != 200 {
			t.Errorf("%v: with all files as they were: %d %s", more, code, text)
		}
		r.stop()
		s.write(files[1], changed(s.read(files[1])))
		d := &Daemon{Settings: Defaults(), Models: []*Model{m}, Log: io.Discard}
		d.Listen = []string{"127.0.0.1:0"}
		if err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "m.ptd: not a signature") {
			t.Errorf("%v: at start: %v", more, err)
		}
	}
}

// TestTrustUsesWhatItChecks replaces each file at the moment when it is checked: what is used is what
// was checked.
func TestTrustUsesWhatItChecks(t *testing.T) {
	for _, more := range [][]string{nil, {"--mmap"}} {
		s := newSigner(t)
		m, paths := s.trusted(t.TempDir(), more...)
		files := &modelFiles{trust: m.Trust}
		with := m.Options
		with.Check = func(ctx context.Context, path string, data []byte) error {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Error(err)
			}
			s.write(path, []byte("no program"))
			defer s.write(path, []byte("something else"))
			return files.check(ctx, path, data)
		}
		p, err := with.OpenProgram(t.Context(), m.Path, etrun.File(m.Path))
		if err != nil {
			t.Fatalf("%v: %v", more, err)
		}
		if _, err := p.Load(t.Context(), "forward"); err != nil {
			t.Errorf("%v: %v", more, err)
		}
		p.Close()
		if len(files.paths) != len(paths) {
			t.Errorf("%v: checked %q, want %q", more, files.paths, paths)
		}
	}
	m := model("m", adder)
	for _, known := range []map[string]string{{adder: strings.Repeat("0", 64)}, {"another": ""}, {}} {
		if _, _, err := m.openHere(known)(t.Context(), trace.Func{}); err == nil ||
			!strings.Contains(err.Error(), "changed after its signature") {
			t.Errorf("a file that is not what was verified: %v", err)
		}
	}
}

// TestTrustInPlace writes other weights over a file that was verified: answers do not change.
func TestTrustInPlace(t *testing.T) {
	for _, more := range [][]string{{"--mmap", "--lower", "off"}, {"--mmap"}, {"--mmap", "--isolate", "--lower", "off"}} {
		if slices.Contains(more, "--isolate") && !canIsolate {
			continue
		}
		s := newSigner(t)
		m, files := s.trusted(t.TempDir(), more...)
		r := start(t, func(*Daemon) {}, m)
		_, before, _ := r.ask("POST", "/v2/models/m/infer", externalBody(r))
		for _, path := range files {
			b := s.read(path)
			for i := len(b) / 2; i < len(b); i++ {
				b[i] ^= 1
			}
			s.write(path, b) // os.WriteFile truncates
		}
		if code, after, _ := r.ask("POST", "/v2/models/m/infer", externalBody(r)); code != 200 || after != before {
			t.Errorf("%v: %d %s, before the files changed %s", more, code, after, before)
		}
		r.stop()
	}
}

// externalBody returns a request for the model with external data.
func externalBody(r *running) string {
	r.t.Helper()
	var m struct {
		Inputs []struct {
			Name, Datatype string
			Shape          []int
		}
	}
	_, text, _ := r.ask("GET", "/v2/models/m", "")
	if err := json.Unmarshal([]byte(text), &m); err != nil || len(m.Inputs) != 1 {
		r.t.Fatalf("%v: %s", err, text)
	}
	n := 1
	for _, size := range m.Inputs[0].Shape {
		n *= size
	}
	shape, _ := json.Marshal(m.Inputs[0].Shape)
	return fmt.Sprintf(`{"inputs":[{"name":%q,"datatype":%q,"shape":%s,"data":[%s1]}]}`, m.Inputs[0].Name, m.Inputs[0].Datatype, shape,
		strings.Repeat("0.5,", n-1))
}

// TestTrustConfig checks that a key on the command line holds for the configuration, too.
func TestTrustConfig(t *testing.T) {
	s := newSigner(t)
	path := file(t, "serve.json", `{"models":[{"path":"m.pte"}]}`)
	read := func(trust string) error {
		limits := DefaultLimits()
		limits.Trust = trust
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		_, err := Models(t.Context(), flags, path, nil, &session.Options{}, &limits)
		return err
	}
	if err := read(""); err != nil {
		t.Errorf("without a key: %v", err)
	}
	s.sign(path)
	if err := read(s.public.String()); err != nil {
		t.Errorf("signed: %v", err)
	}
	other := file(t, "other", "other")
	s.sign(other)
	for _, f := range faults {
		text, signature := s.read(path), s.read(path+".minisig")
		f.make(s, path, other)
		if err := read(s.public.String()); !strings.Contains(fmt.Sprint(err), f.want) || !strings.Contains(fmt.Sprint(err), "serve.json") {
			t.Errorf("%s: %v", f.name, err)
		}
		s.write(path, text)
		s.write(path+".minisig", signature)
	}
}
