package text

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Of the fake's pictures: a row for each red sample of 2×2 pixels, whose token is a multiple of 8 of it, from 32 on.
const (
	fakeSide = 2
	fakeRow  = 3
)

// put writes rows of tokens.
func (f *fake) put(out *tensor.Tensor, tokens []int64) error {
	if err := out.Resize([]int{1, len(tokens), f.rows}); err != nil {
		return err
	}
	size := out.DType.Size()
	for i, id := range tokens {
		for k := range f.rows {
			tensor.Put(out.Data[(i*f.rows+k)*size:], out.DType, float32(id)/float32(k+1))
		}
	}
	return nil
}

func (f *fake) embed(_ *kernels.Ctx, a kernels.Args) error {
	return f.put(a.Tensor(1), integers(a.Tensor(0)))
}

func (f *fake) eye(_ *kernels.Ctx, a kernels.Args) error {
	f.calls.Add(100)
	var tokens []int64
	for _, x := range tensor.Data[float32](a.Tensor(0))[:fakeSide*fakeSide] {
		tokens = append(tokens, 32+int64(255*x)/8)
	}
	return f.put(a.Tensor(1), tokens)
}

// partMethods are the methods beside the decoder.
func (f *fake) partMethods() []pte.Method {
	method := func(name, operator string, in, out *pte.Tensor) pte.Method {
		in.DimOrder, out.DimOrder = tensor.ContiguousOrder(len(in.Sizes)), tensor.ContiguousOrder(len(out.Sizes))
		in.Storage, out.Storage, out.Offset = pte.Planned, pte.Planned, (in.NBytes()+63)/64*64
		return pte.Method{Name: name, Operators: []pte.Operator{{Name: "test::" + operator, Overload: "out"}}, Inputs: []int{0}, Outputs: []int{1},
			Values: []pte.Value{{Kind: tensor.KindTensor, Tensor: in}, {Kind: tensor.KindTensor, Tensor: out}},
			Arenas: []pte.Arena{{Size: out.Offset + out.NBytes()}},
			Chains: []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Args: []int{0, 1, 1}}}}}}
	}
	tokens := &pte.Tensor{DType: f.tokens, Sizes: []int{1, f.embeds}}
	rows := &pte.Tensor{DType: f.rowType, Sizes: []int{1, f.embeds, f.rows}}
	if f.dynamic {
		tokens.Dynamism, rows.Dynamism = tensor.DynamicBound, tensor.DynamicBound
	}
	return []pte.Method{method(methodRows, "embed", tokens, rows),
		method("vision_encoder", "eye", &pte.Tensor{DType: tensor.Float32, Sizes: []int{1, 3, fakeSide, fakeSide}},
			&pte.Tensor{DType: f.rowType, Sizes: []int{1, fakeSide * fakeSide, f.rows}})}
}

// fakeWithParts returns a fake that takes pictures.
func fakeWithParts() fake {
	f := fakeDefault()
	f.rows, f.rowType, f.rank, f.embeds, f.all = fakeRow, tensor.Float32, 3, f.width, true
	return f
}

// fakePicture returns a picture of 2×2 red samples, and the tokens that the fake's encoder makes of it.
func fakePicture(red ...byte) (file []byte, tokens []int) {
	img := image.NewNRGBA(image.Rect(0, 0, fakeSide, fakeSide))
	for i, v := range red {
		img.Set(i%fakeSide, i/fakeSide, color.NRGBA{v, 0, 0, 255})
		tokens = append(tokens, 32+int(v)/8)
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img)
	return b.Bytes(), tokens
}

func encodePart(t testing.TB, m *Model, medium Medium, file []byte) *Part {
	t.Helper()
	p, err := m.EncodePart(t.Context(), medium, file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestParts continues prompts with pictures in programs of all forms, in parts of several sizes, and compares them with the text of the tokens
// that the rows are of.
func TestParts(t *testing.T) {
	first, firstTokens := fakePicture(8, 80, 160, 250)
	second, secondTokens := fakePicture(0, 1, 2, 255)
	for name, change := range map[string]func(f *fake){
		"float32":           func(*fake) {},
		"float16":           func(f *fake) { f.rowType, f.logits = tensor.Float16, tensor.Float16 },
		"bfloat16":          func(f *fake) { f.rowType, f.tokens = tensor.BFloat16, tensor.Int32 },
		"rank 2":            func(f *fake) { f.rank = 2 },
		"positions":         func(f *fake) { f.positions = f.width },
		"last logits":       func(f *fake) { f.all = false },
		"no cache":          func(f *fake) { f.cache, f.positions, f.width, f.meta["use_kv_cache"] = "", 0, 24, false },
		"counted":           func(f *fake) { f.cache, f.positions = "count", 0 },
		"one at a time":     func(f *fake) { f.dynamic, f.width, f.embeds, f.all = false, 1, 1, false },
		"fewer embeddings":  func(f *fake) { f.embeds = 3 },
		"fixed":             func(f *fake) { f.dynamic = false },
		"more embeddings":   func(f *fake) { f.embeds = 20 },
		"scalar position":   func(f *fake) { f.scalar = true },
		"float32 of 1 wide": func(f *fake) { f.rows = 1 },
	} {
		f := fakeWithParts()
		change(&f)
		for _, chunk := range []int{0, 1, 3} {
			m := f.load(t, nil, WithChunk(chunk))
			if !slices.Equal(m.Info().Media, []Medium{Picture}) {
				t.Fatalf("%s: got media %v", name, m.Info().Media)
			}
			a, b := encodePart(t, m, Picture, first), encodePart(t, m, Picture, second)
			prompt := slices.Concat([]int{1, 2}, a.Tokens(), []int{3}, b.Tokens(), a.Tokens()[:2], []int{4})
			want := fakeGreedy(slices.Concat([]int{1, 2}, firstTokens, []int{3}, secondTokens, firstTokens[:2], []int{4}), f.vocabulary, 6)
			s := sessionOf(t, m)
			for range 2 {
				got, _, _, err := collect(s.GenerateTokens(t.Context(), prompt, Options{MaxTokens: 6, Parts: []*Part{b, a}}))
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s, parts of %d tokens: got %d, %v, want %d", name, chunk, got, err, want)
				}
			}
			got, _, _, err := collect(s.GenerateTokens(t.Context(), prompt[:5], Options{MaxTokens: 2, Parts: []*Part{a},
				Sampling: Sampling{RepetitionPenalty: 1.0001}, Lookup: 3}))
			if want := fakeGreedy(append([]int{1, 2}, firstTokens[:3]...), f.vocabulary, 2); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: the beginning of a picture: got %d, %v, want %d", name, got, err, want)
			}
		}
	}
}

// TestPartsReused checks what another prompt computes again, and that a picture is encoded once.
func TestPartsReused(t *testing.T) {
	f := fakeWithParts()
	m := f.load(t, nil)
	file, _ := fakePicture(8, 80, 160, 250)
	other, _ := fakePicture(8, 80, 160, 251)
	a, b := encodePart(t, m, Picture, file), encodePart(t, m, Picture, other)
	if encodePart(t, m, Picture, bytes.Clone(file)) != a || f.calls.Load() != 200 {
		t.Errorf("the same picture is encoded again: %d", f.calls.Load())
	}
	if m.SharedBytes() < a.bytes()+b.bytes() {
		t.Errorf("%d bytes are shared, want at least those of two pictures", m.SharedBytes())
	}
	s := sessionOf(t, m)
	for _, c := range []struct {
		name   string
		prompt []int
		reused int
	}{
		{"a first one", slices.Concat([]int{1}, a.Tokens(), []int{2}), 0},
		{"another question", slices.Concat([]int{1}, a.Tokens(), []int{3}), 5},
		{"another picture", slices.Concat([]int{1}, b.Tokens(), []int{3}), 1},
		{"two pictures", slices.Concat([]int{1}, b.Tokens(), a.Tokens()), 5},
	} {
		_, _, last, err := collect(s.GenerateTokens(t.Context(), c.prompt, Options{MaxTokens: 1, Parts: []*Part{a, b}}))
		if err != nil || last.Stats.Reused != c.reused {
			t.Errorf("%s: %d tokens were reused, %v, want %d", c.name, last.Stats.Reused, err, c.reused)
		}
	}
	for i := range 3 * maxKeptParts {
		file, _ := fakePicture(byte(i), 1, 2, 3)
		encodePart(t, m, Picture, file)
	}
	if len(m.media.kept) != maxKeptParts {
		t.Errorf("%d pictures are kept, want %d", len(m.media.kept), maxKeptParts)
	}
	if err := m.Shrink(); err != nil || len(m.media.kept) != 0 {
		t.Errorf("%d pictures are kept after Shrink, %v", len(m.media.kept), err)
	}
}

// TestPartsRefused checks that what does not fit is one error.
func TestPartsRefused(t *testing.T) {
	f := fakeWithParts()
	m := f.load(t, nil)
	plain, wide := fakeDefault(), fakeWithParts()
	wide.rows = 5
	file, _ := fakePicture(1, 2, 3, 4)
	a, b := encodePart(t, m, Picture, file), encodePart(t, wide.load(t, nil), Picture, file)
	for _, c := range []struct {
		name string
		run  func() error
		text string
	}{
		{"a picture for a model of texts", func() error {
			_, err := plain.load(t, nil).EncodePart(t.Context(), Picture, file)
			return err
		}, "no encoder"},
		{"a sound for a model of pictures", func() error {
			_, err := m.EncodePart(t.Context(), Sound, file)
			return err
		}, "no encoder"},
		{"no picture", func() error {
			_, err := m.EncodePart(t.Context(), Picture, []byte("%PDF-1.7"))
			return err
		}, "unknown format"},
		{"half a picture", func() error {
			_, err := m.EncodePart(t.Context(), Picture, file[:len(file)-20])
			return err
		}, "png"},
		{"nothing", func() error {
			_, err := m.EncodePart(t.Context(), Picture, nil)
			return err
		}, "unknown format"},
		{"a picture over the limit", func() error {
			_, err := f.load(t, nil, WithMediaLimit(1000)).EncodePart(t.Context(), Picture, file)
			return err
		}, "limit"},
		{"a prompt without its picture", func() error { return m.CheckPrompt(a.Tokens()) }, "token 0"},
		{"a picture of another model", func() error { return m.CheckPrompt(b.Tokens(), b) }, "another model"},
		{"a picture for a model without", func() error { return plain.load(t, nil).CheckPrompt(a.Tokens(), a) }, "another model"},
		{"another minimum", func() error { return m.CheckPrompt([]int{-1}, a) }, "token 0"},
	} {
		if err := c.run(); !errors.Is(err, etrun.ErrInput) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.text)
		}
	}
	s := sessionOf(t, m)
	if _, _, _, err := collect(s.GenerateTokens(t.Context(), a.Tokens(), Options{MaxTokens: 1, Parts: []*Part{a}})); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := collect(s.GenerateTokens(t.Context(), a.Tokens(), Options{MaxTokens: 1})); !is[*TokenError](err) {
		t.Errorf("a later prompt without its picture: got %v", err)
	}
}

// testModel is a model that sees, as optimum exports it, with the results of PyTorch in its cases.json.
func testModel(t *testing.T) (*mediaCase, *Model) {
	t.Helper()
	c := &mediaCase{}
	c.Files.Model, c.Files.Tokenizer = "model.pte", "."
	return c, c.load(t, "testdata/pictures", []etrun.Option{etrun.WithDelegates(all.Backends()...)})
}

// TestMedia continues prompts with pictures of testdata.
func TestMedia(t *testing.T) {
	for name, options := range mediaEngines {
		t.Run(name, func(t *testing.T) { checkMedia(t, "testdata/pictures", options) })
	}
}

// TestPartsTogether continues prompts with different pictures at the same time, which gives the tokens that they have alone.
func TestPartsTogether(t *testing.T) {
	_, m := testModel(t)
	var wait sync.WaitGroup
	for _, name := range []string{"a.png", "b.jpg"} {
		file, err := os.ReadFile(filepath.Join("testdata/pictures", name))
		if err != nil {
			t.Fatal(err)
		}
		p := encodePart(t, m, Picture, file)
		prompt, err := m.EncodeParts("What is this?", []*Part{p}, false)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{MaxTokens: 12, Parts: []*Part{p}, IgnoreEOS: true}
		want, _, _, err := collect(sessionOf(t, m).GenerateTokens(t.Context(), prompt, o))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s := sessionOf(t, m)
			wait.Go(func() {
				for range 3 {
					got, _, _, err := collect(s.GenerateTokens(t.Context(), prompt, o))
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s: got %d, %v, want %d", name, got, err, want)
					}
					if err := s.Reset(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wait.Wait()
}

// TestPlacedParts makes prompts with pictures by templates of all kinds.
func TestPlacedParts(t *testing.T) {
	_, m := testModel(t)
	file, err := os.ReadFile("testdata/pictures/a.png")
	if err != nil {
		t.Fatal(err)
	}
	p := encodePart(t, m, Picture, file)
	gemma, err := NamedTemplate("gemma")
	if err != nil {
		t.Fatal(err)
	}
	jinja := func(source string) *Template {
		t, err := NewJinjaTemplate("own", source, "<bos>", "")
		return errorless(t, err)
	}
	lists := jinja("{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}" +
		"{% for x in m.content %}{% if x.type == 'image' %}<start_of_image>{% else %}{{ x.text }}{% endif %}{% endfor %}{% endif %}<end_of_turn>{% endfor %}")
	texts := jinja("{% for m in messages %}<start_of_turn>{{ m.content | trim }}<end_of_turn>{% endfor %}")
	dropped := jinja("{% for m in messages %}{{ m.content if m.content is string and not 'see' in m.content else 'x' }}{% endfor %}")
	message := UserMessage("see <image>, and <image>\uFDD3", p, p)
	for _, c := range []struct {
		name     string
		template *Template
		message  Message
		want     string
	}{
		{"in places", gemma, message, "[<bos>][<start_of_turn>]user\nsee [<start_of_image>]*, and [<start_of_image>]*[<end_of_turn>]\n[<start_of_turn>]model\n"},
		{"before the text", gemma, UserMessage("what?", p), "[<bos>][<start_of_turn>]user\n[<start_of_image>]*what?[<end_of_turn>]\n[<start_of_turn>]model\n"},
		{"no text", gemma, UserMessage("", p), "[<bos>][<start_of_turn>]user\n[<start_of_image>]*[<end_of_turn>]\n[<start_of_turn>]model\n"},
		{"one after the other", gemma, UserMessage("!", p, p),
			"[<bos>][<start_of_turn>]user\n[<start_of_image>]*[<end_of_image>]\n[<start_of_image>]*![<end_of_turn>]\n[<start_of_turn>]model\n"},
		{"lists", lists, message, "[<bos>][<start_of_turn>]user\nsee \n\n[<start_of_image>]*[<end_of_image>]\n\n, and \n\n[<start_of_image>]*[<end_of_image>]\n\n[<end_of_turn>]"},
		{"a control token in the text", lists, UserMessage("<start_of_image><image>", p),
			"[<bos>][<start_of_turn>]user\n<start_of_image>\n\n[<start_of_image>]*[<end_of_image>]\n\n[<end_of_turn>]"},
		{"texts", texts, message, "[<start_of_turn>]see [<start_of_image>]*, and [<start_of_image>]*[<end_of_turn>]"},
		{"dropped", dropped, message, "error: it writes 0 of 2"},
		{"of the system", gemma, Message{Role: "system", Content: "x", Parts: []Placed{{0, p}}}, "error: of the role"},
		{"in no order", gemma, Message{Role: "user", Content: "xy", Parts: []Placed{{1, p}, {0, p}}}, "error: order"},
	} {
		ids, _, err := m.EncodeConversation(c.template, &Conversation{Messages: []Message{c.message}})
		got := flatten(m, ids)
		if text, bad := strings.CutPrefix(c.want, "error: "); bad {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: got %q, %v, want an error with %q", c.name, got, err, text)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: got\n%q, %v, want\n%q", c.name, got, err, c.want)
		}
	}
}

func errorless[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// flatten returns tokens as text: control tokens in brackets, and * for a part.
func flatten(m *Model, ids []int) string {
	var b strings.Builder
	for i, id := range ids {
		if id < 0 {
			if i == 0 || ids[i-1] >= 0 {
				b.WriteByte('*')
			}
			continue
		}
		text, _ := m.tok.Append(nil, id)
		if len(text) == 0 {
			for n := range m.controls {
				for _, name := range m.controls[n] {
					if x, _ := m.tok.ID(name); x == id {
						text = []byte("[" + name + "]")
					}
				}
			}
		}
		b.Write(text)
	}
	return b.String()
}
