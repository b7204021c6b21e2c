package daemon

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/browsertest"
)

// pageFiles are files of the page, with a part of each.
var pageFiles = map[string]string{"/": `<script src="/page/page.js">`, "/page/page.css": "--paper", "/page/api.js": "sessionStorage", "/page/try.js": "run"}

func TestWebPage(t *testing.T) {
	r := start(t, nil, model("m", adder))
	for path, part := range pageFiles {
		code, text, h := r.ask("GET", path, "")
		if code != 200 || !strings.Contains(text, part) || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'; ") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: status %d, headers %v", path, code, h)
		}
	}
	for _, tt := range []struct {
		method, path string
		code         int
		header       []string
	}{
		{"GET", "/page/none.js", 404, nil}, {"GET", "/index.html", 404, nil}, {"POST", "/", 404, nil},
		{"HEAD", "/", 200, nil}, {"GET", "/", 403, []string{"Origin", "http://evil.example"}}, {"GET", "/page/api.js", 403, []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		if code, text, _ := r.ask(tt.method, tt.path, "", tt.header...); code != tt.code {
			t.Errorf("%s %s %q: status %d, want %d: %.100s", tt.method, tt.path, tt.header, code, tt.code, text)
		}
	}
}

// Names that no file has are quoted in the error, which is JSON.
func TestWebPageNames(t *testing.T) {
	r := start(t, nil, model("m", adder))
	for _, path := range []string{"/page/none.js", "/page/%22%7d%3cscript%3e%07", "/page/%C3%A9%FF", "/page/" + strings.Repeat("%22", 300)} {
		code, text, _ := r.ask("GET", path, "")
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(text), &answer); code != 404 || err != nil || answer.Error == "" {
			t.Errorf("%.40s: status %d, %v: %.100s", path, code, err, text)
		}
	}
}

// The page refers to files of the server only, and has no scripts or styles inside.
func TestWebPageIsStrict(t *testing.T) {
	r := start(t, nil, model("m", adder))
	for path := range pageFiles {
		_, text, _ := r.ask("GET", path, "")
		for _, bad := range []string{"http://", "https://", " style=\"", " onclick", "innerHTML", "insertAdjacentHTML", "document.write", "eval(", "<script>", "@import"} {
			if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), bad) {
				t.Errorf("%s: %q", path, bad)
			}
		}
	}
}

func TestNoWebPage(t *testing.T) {
	r := start(t, func(d *Daemon) { d.NoPage = true }, model("m", adder))
	for path := range pageFiles {
		if code, text, _ := r.ask("GET", path, ""); code != 404 || !strings.Contains(text, "error") {
			t.Errorf("%s: status %d", path, code)
		}
	}
}

// Clients that are not authenticated get the page but no figure of the server.
func TestWebPageAsksForAToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(d *Daemon) { d.TokenFile = file }, model("secret-model", adder))
	for path := range pageFiles {
		if code, text, _ := r.ask("GET", path, ""); code != 200 || strings.Contains(text, "secret-model") {
			t.Errorf("%s: status %d", path, code)
		}
	}
	for _, path := range []string{"/v2", "/metrics", "/v1/models"} {
		if code, _, _ := r.ask("GET", path, ""); code != 401 {
			t.Errorf("%s: status %d, want 401", path, code)
		}
	}
	b := browsertest.Open(t, r.url+"/", 390)
	const shown = "getComputedStyle(document.getElementById('login')).display != 'none'"
	b.Play([]browsertest.Step{
		{"the login", "", shown, "true"},
		{"a wrong token", "document.getElementById('token').value = 'wrong'; document.querySelector('#login button').click()", "document.getElementById('login-fault').textContent", "the server does not know this token"},
		{"the token", "document.getElementById('token').value = '0123456789abcdef'; document.querySelector('#login button').click()", "document.querySelectorAll('#model-list .card').length + ' ' + document.querySelector('#model-list h3')?.textContent", "1 secret-model"},
		{"no login any more", "", shown, "false"},
	})
}

// drawn are the strokes of a 3, in parts of the pad.
var drawn = [][2]float64{{.35, .2}, {.5, .2}, {.65, .2}, {.68, .3}, {.6, .4}, {.5, .47}, {.6, .52}, {.7, .6}, {.67, .72}, {.6, .8}, {.5, .8}, {.35, .8}}

func TestWebPageInBrowser(t *testing.T) {
	text := model("words", "../../../../text/testdata/dynamic.pte")
	text.Tokenizer = "../../../../text/testdata/bytes.json"
	const encoders = "../../../../text/testdata/encoders"
	vectors := model("vectors", encoders+"/bert.pte")
	vectors.Tokenizer = encoders
	for _, width := range []int{1280, 390} {
		r := start(t, func(d *Daemon) { d.Control = true }, model("digits", digits), model("sums", adder), text, vectors)
		b := browsertest.Open(t, r.url+"/", width)
		const fits = "document.documentElement.scrollWidth <= innerWidth"
		state := "[...document.querySelectorAll('#model-list .card')].map(c => c.querySelector('h3').textContent + ' ' + c.querySelector('p span').textContent).join(', ')"
		press := func(model, button string) string {
			return "[...document.querySelectorAll('#model-list .card')].find(c => c.querySelector('h3').textContent === '" + model +
				"').querySelectorAll('button').forEach(b => { if (b.textContent === '" + button + "') b.click() })"
		}
		b.Play([]browsertest.Step{
			{"models", "", state, "digits ready, sums ready, vectors ready, words ready"},
			{"their types", "", "document.getElementById('model-list').textContent.includes('FP32 1×1×8×8')", "true"},
			{"what texts are for", "", "[...document.querySelectorAll('#model-list .card a:not([hidden])')].map(a => a.textContent).join()", "try it,try it,chat"},
			{"vectors", "", "document.getElementById('model-list').textContent.includes('computes vectors of texts')", "true"},
			{"fits", "", fits, "true"},
			{"unload", press("sums", "unload"), state + ".includes('sums unloaded')", "true"},
			{"load", press("sums", "load"), state, "digits ready, sums ready, vectors ready, words ready"},
			{"try", "location.hash = '#try'", "document.querySelectorAll('canvas.pad').length", "1"},
		})
		shot := func(name string) { b.Shot(fmt.Sprintf("server-%s-%d", name, width)) }
		b.Drag("canvas.pad", drawn...)
		b.Play([]browsertest.Step{
			{"the digit", "", "document.querySelector('.bars tbody td')?.textContent", "3"},
			{"no plot of scores", "", "document.querySelectorAll('canvas.plot').length", "0"},
			{"fits", "", fits, "true"},
			{"controls stay in their box", "", "[...document.querySelectorAll('#try-inputs input, #try-inputs select')].every(e => e.getBoundingClientRect().right <= document.getElementById('try-inputs').getBoundingClientRect().right)", "true"},
		})
		shot("digit")
		b.Play([]browsertest.Step{
			{"too few numbers", "(t => { t.value = '1 2'; t.dispatchEvent(new Event('input')) })(document.querySelector('#try-inputs textarea')); document.getElementById('try-run').click()", "document.getElementById('try-fault').textContent", "input_0: 2 elements, want 64"},
			{"sums", "(s => { s.value = 'sums'; s.dispatchEvent(new Event('change')) })(document.getElementById('try-model'))", "document.querySelector('#try-inputs h3')?.textContent", "input_0: FP32 4"},
			{"a sum", "(t => { t.value = '1, 2.5 3 4'; t.dispatchEvent(new Event('input')) })(document.querySelector('#try-inputs textarea')); document.getElementById('try-run').click()", "document.querySelector('#try-outputs code')?.textContent.split(' ').length", "4"},
			{"chat", "location.hash = '#chat'", "[...document.getElementById('chat-model').options].map(o => o.value).join()", "words"},
			{"no template, no chat", "", "document.getElementById('chat-form').value + document.getElementById('chat-note').textContent.includes('no chat template')", "texttrue"},
			{"a text", "document.getElementById('chat-max').value = 8; document.getElementById('chat-text').value = 'Hi'; document.getElementById('chat-send').click()", "document.getElementById('chat-rate').textContent.includes('ended by')", "true"},
			{"fits", "", fits, "true"},
		})
		shot("chat")
		b.Play([]browsertest.Step{
			{"figures", "location.hash = '#figures'", "[...document.querySelectorAll('#figure-list .card > h3:first-child')].map(h => h.textContent).join()", "digits,sums,vectors,words"},
			{"a histogram", "", "document.querySelectorAll('svg.histogram rect').length > 2", "true"},
			{"axes", "", "[...document.querySelectorAll('.axes')].every(a => a.querySelector('.below').textContent && a.querySelector('.scale').textContent)", "true"},
			{"fits", "", fits, "true"},
			{"dark", "document.documentElement.dataset.theme = 'light'; document.getElementById('theme').click()", "getComputedStyle(document.body).backgroundColor", "rgb(20, 23, 26)"},
		})
		shot("figures-dark")
		b.Play([]browsertest.Step{{"models, dark", "location.hash = '#models'", state + ".includes('sums ready')", "true"}})
		shot("models-dark")
	}
}

// A sound that is dropped into the page has its text there.
func TestWebPageListens(t *testing.T) {
	const folder = "../../../../speech/testdata/"
	ctc, whisper := model("letters", folder+"ctc/model.pte"), model("whisper", folder+"whisper/model.pte")
	ctc.Tokenizer, whisper.Tokenizer = folder+"ctc", folder+"whisper"
	sound, err := os.ReadFile(folder + "speech.wav")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, ctc, whisper)
	b := browsertest.Open(t, r.url+"/#listen", 390)
	drop := func(bytes string) string {
		return "(f => { const d = new DataTransfer(); d.items.add(new File([Uint8Array.from(atob('" + bytes + "'), c => c.charCodeAt(0))], 'a.wav')); " +
			"f.files = d.files; f.dispatchEvent(new Event('change')) })(document.getElementById('listen-file'))"
	}
	const said = "document.getElementById('listen-fault').textContent + (document.getElementById('listen-time').textContent.endsWith(' s') && document.getElementById('listen-text').textContent.length > 20)"
	b.Play([]browsertest.Step{
		{"models", "", "[...document.getElementById('listen-model').options].map(o => o.value).join()", "letters,whisper"},
		{"no translation", "", "document.getElementById('listen-translate-label').hidden", "true"},
		{"a sound", drop(base64.StdEncoding.EncodeToString(sound)), said, "true"},
		{"letters alone", "", "/^[A-Z ]+$/.test(document.getElementById('listen-text').textContent)", "true"},
		{"a recording", "document.getElementById('listen-record').click()", "document.getElementById('listen-time').textContent.startsWith('recording, 2')", "true"},
		{"its end", "document.getElementById('listen-record').click()", "document.getElementById('listen-fault').textContent + document.getElementById('listen-time').textContent.endsWith(' s') + (document.getElementById('listen-sound').duration > 0.5)", "truetrue"},
		{"another file", drop("YWJjZGVmZw=="), "document.getElementById('listen-fault').textContent", "the browser cannot play this file"},
		{"another model", "(s => { s.value = 'whisper'; s.dispatchEvent(new Event('change')) })(document.getElementById('listen-model'))", "document.getElementById('listen-translate-label').hidden", "false"},
		{"its text", drop(base64.StdEncoding.EncodeToString(sound)), said, "true"},
		{"fits", "", "document.documentElement.scrollWidth <= innerWidth", "true"},
	})
	b.Shot("server-listen-390")
}

// Conversations are kept in the browser, edited and asked again; replies are Markdown without markup.
func TestWebPageChats(t *testing.T) {
	m := model("words", "../../../../text/testdata/dynamic.pte")
	m.Tokenizer, m.Template = "../../../../text/testdata/bytes.json", filepath.Join(t.TempDir(), "template.jinja")
	if err := os.WriteFile(m.Template, []byte("{% for m in messages %}{{ m.content }}{% endfor %}"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, m)
	b := browsertest.Open(t, r.url+"/#chat", 390)
	const roles = "[...document.querySelectorAll('#chat-log .message')].map(m => m.classList[1]).join()"
	click := func(button string) string {
		return "[...document.querySelectorAll('#chat-log button')].findLast(b => b.textContent === '" + button + "').click()"
	}
	send := func(text string) string {
		return "document.getElementById('chat-text').value = '" + text + "'; document.getElementById('chat-send').click()"
	}
	const idle = "!document.getElementById('chat-send').disabled && "
	const kept = "JSON.parse(localStorage.getItem('etrun-chats')).map(c => c.messages.map(m => m.role === 'user' ? m.content : '.').join('')).join()"
	b.Play([]browsertest.Step{
		{"chat", "document.getElementById('chat-max').value = 3; document.getElementById('chat-seed').value = 1", "document.getElementById('chat-form').value + document.getElementById('chat-model').value", "chatwords"},
		{"a message", send("one"), idle + roles, "user,assistant"},
		{"the next", send("two"), idle + "document.getElementById('chat-fault').textContent + " + roles, "user,assistant,user,assistant"},
		{"is kept", "", kept, "one.two."},
		{"again", click("again"), idle + roles, "user,assistant,user,assistant"},
		{"edit", click("edit"), "document.getElementById('chat-text').value + " + roles, "twouser,assistant"},
		{"another", send("three"), idle + kept, "one.three."},
		{"a new chat", "document.getElementById('chat-new').click()", roles, ""},
		{"in it", send("four"), idle + kept, "four.,one.three."},
		{"the earlier one", "(s => { s.selectedIndex = 2; s.dispatchEvent(new Event('change')) })(document.getElementById('chat-kept'))", roles, "user,assistant,user,assistant"},
		{"delete it", "document.getElementById('chat-forget').click()", kept, "four."},
		{"markdown", "markdown.show('# A & b\\n- *c*\\n- `d<e`\\n\\n```go\\nx < y\\n```\\n<img src=x onerror=alert(1)> [l](javascript:alert(1)) [m](https://e.example) ![p](https://e.example/p.png)\\n\\n|a|b|\\n|-|-:|\\n|1|2|\\n', document.getElementById('chat-log'))",
			"[...document.querySelectorAll('#chat-log :is(h3, em, pre code, td, a)')].map(e => e.textContent).join('|')", "A & b|c|x < y|m|p|1|2"},
		{"no markup", "", "document.querySelectorAll('#chat-log :is(img, script, a[href^=j])').length", "0"},
		{"fits", "", "document.documentElement.scrollWidth <= innerWidth", "true"},
	})
}

// A picture that is dropped into a chat is part of the message, and is not kept with it.
func TestWebPageSees(t *testing.T) {
	const folder = "../../../../text/testdata/pictures/"
	m := model("eyes", folder+"model.pte")
	m.Tokenizer, m.Template = folder, "gemma"
	picture, err := os.ReadFile(folder + "a.png")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, m)
	b := browsertest.Open(t, r.url+"/#chat", 390)
	drop := "(d => { d.items.add(new File([Uint8Array.from(atob('" + base64.StdEncoding.EncodeToString(picture) + "'), c => c.charCodeAt(0))], 'a.png', { type: 'image/png' })); " +
		"document.getElementById('chat-drop').dispatchEvent(new DragEvent('drop', { dataTransfer: d })) })(new DataTransfer())"
	const waiting = "document.querySelectorAll('#chat-pictures img').length"
	b.Play([]browsertest.Step{
		{"a model that sees", "document.getElementById('chat-max').value = 8", "document.getElementById('chat-drop').hidden", "false"},
		{"two pictures", drop + ";" + drop, waiting, "2"},
		{"one removed", "document.querySelector('#chat-pictures img').click()", waiting, "1"},
		{"a message", "document.getElementById('chat-text').value = 'What?'; document.getElementById('chat-send').click()",
			"!document.getElementById('chat-send').disabled && document.getElementById('chat-fault').textContent + [...document.querySelectorAll('#chat-log .message')].map(m => m.classList[1] + m.querySelectorAll('img').length).join()",
			"user1,assistant0"},
		{"none is left", "", waiting, "0"},
		{"it was seen", "", "/^[0-9]+ tokens/.test(document.getElementById('chat-rate').textContent)", "true"},
		{"is not kept", "", "localStorage.getItem('etrun-chats').includes('base64')", "false"},
		{"fits", "", "document.documentElement.scrollWidth <= innerWidth", "true"},
	})
	b.Shot("server-chat-picture-390")
}
