//go:build cgo

package main

// #include <stdlib.h>
// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// writer is the object of a text's handle.
type writer struct {
	mu sync.Mutex
	*shared
	session *text.Session
	running *generation  // nil: no text is in progress
	parts   []*text.Part // of the next text
	cancel  atomic.Pointer[context.CancelFunc]

	logProbs bool // asked for by the text in progress
	memory   pieceMemory
}

// shared is what the texts of a model share.
type shared struct {
	model  *text.Model
	chat   *text.Template // nil: none fits the tokenizer, with the error
	noChat error
	source string       // of the template, where options have it
	texts  atomic.Int64 // that are open
}

// close closes the model after the last of its texts.
func (s *shared) close() error {
	if s.texts.Add(-1) > 0 {
		return nil
	}
	return s.model.Close()
}

//export etrun_text_open
func etrun_text_open(handle C.etrun_program, options *C.etrun_text_options, opened *C.etrun_text, message **C.char) C.int {
	return call(message, func() error {
		if opened == nil {
			return argument("text is NULL")
		}
		*opened = 0
		p, err := find[*program](C.uint64_t(handle), programs)
		if err != nil {
			return err
		}
		if options == nil {
			options = new(C.etrun_text_options)
		}
		w, err := openText(p, options)
		if err == nil {
			*opened = C.etrun_text(handles.add(texts, w))
		}
		return err
	})
}

// openText loads a model and opens its session.
func openText(p *program, o *C.etrun_text_options) (*writer, error) {
	tok, err := tokenizerOf(o.tokenizer, o.tokenizer_data)
	if err != nil {
		return nil, err
	}
	options, err := textOptions(o)
	if err != nil {
		return nil, err
	}
	w := &writer{shared: new(shared)}
	w.texts.Store(1)
	if w.model, err = text.Load(context.Background(), p.Program, tok, options...); err != nil {
		return nil, err
	}
	if err = w.findChat(o, tok); err == nil {
		w.session, err = w.model.NewSession(context.Background())
	}
	if err != nil {
		w.model.Close()
		return nil, err
	}
	return w, nil
}

// tokenizerOf returns the tokenizer of a text, nil without one.
func tokenizerOf(path *C.char, content C.etrun_bytes) (tokenizer.Tokenizer, error) {
	data, err := bytesOf("options.tokenizer_data", content.data, content.bytes)
	switch {
	case err != nil:
		return nil, err
	case path != nil && data != nil:
		return nil, argument("options: both tokenizer and tokenizer_data are set")
	case path != nil:
		return tokenizer.Open(C.GoString(path))
	case data != nil:
		return tokenizer.Parse(append([]byte(nil), data...))
	}
	return nil, nil
}

// textOptions converts the options of a model.
func textOptions(o *C.etrun_text_options) (list []text.Option, err error) {
	if err := checkReserved(o.reserved[:]); err != nil {
		return nil, err
	}
	eos, err := listOf("options.eos", o.eos, o.n_eos)
	if err != nil {
		return nil, err
	}
	processor, err := bytesOf("options.processor", o.processor.data, o.processor.bytes)
	if err != nil {
		return nil, err
	}
	if processor != nil {
		list = append(list, text.WithProcessor(append([]byte(nil), processor...)))
	}
	if o.batch != 0 {
		list = append(list, text.WithBatch(int(o.batch)))
	}
	if name := textOf(o.method); name != "" {
		list = append(list, text.WithMethod(name))
	}
	if o.context != 0 {
		list = append(list, text.WithContext(int(o.context)))
	}
	if o.has_bos != 0 {
		list = append(list, text.WithBOS(int(o.bos)))
	}
	if len(eos) > 0 {
		list = append(list, text.WithEOS(ints(eos)...))
	}
	return list, nil
}

func ints(list []C.int32_t) []int {
	numbers := make([]int, len(list))
	for k, n := range list {
		numbers[k] = int(n)
	}
	return numbers
}

// findChat finds the template of chats. Without a name it may be missing: then chats are refused.
func (w *writer) findChat(o *C.etrun_text_options, tok tokenizer.Tokenizer) (err error) {
	switch name := textOf(o.chat_template); {
	case strings.Contains(name, "{"):
		w.source = name
		w.chat, err = text.NewTemplate("options.chat_template", name)
	case name != "":
		w.chat, err = text.NamedTemplate(name)
	case tok == nil:
		w.noChat = argument("a chat needs a tokenizer")
	default:
		w.chat, w.noChat = text.FindTemplate(tok)
	}
	if err == nil && w.chat != nil {
		err = w.model.CheckTemplate(w.chat)
	}
	return err
}

//export etrun_text_fork
func etrun_text_fork(handle C.etrun_text, opened *C.etrun_text, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		if opened == nil {
			return argument("fork is NULL")
		}
		*opened = 0
		w.end()
		session, err := w.session.Fork(context.Background())
		if err != nil {
			return err
		}
		w.texts.Add(1)
		*opened = C.etrun_text(handles.add(texts, &writer{shared: w.shared, session: session}))
		return nil
	})
}

//export etrun_text_close
func etrun_text_close(handle C.etrun_text, message **C.char) C.int {
	return call(message, func() error {
		w, err := remove[*writer](C.uint64_t(handle), texts)
		if err != nil {
			return err
		}
		w.stop() // a thread that waits for a piece
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end()
		w.memory.free()
		err = w.session.Close()
		if e := w.close(); err == nil {
			err = e
		}
		return err
	})
}

// withText calls f with exclusive use of a text.
func withText(handle C.etrun_text, message **C.char, f func(w *writer) error) C.int {
	return call(message, func() error {
		w, err := find[*writer](C.uint64_t(handle), texts)
		if err != nil {
			return err
		}
		if !w.mu.TryLock() {
			return &fault{errBusy, "the text is in use by another thread"}
		}
		defer w.mu.Unlock()
		return f(w)
	})
}

//export etrun_text_cancel
func etrun_text_cancel(handle C.etrun_text, message **C.char) C.int {
	return call(message, func() error {
		w, err := find[*writer](C.uint64_t(handle), texts)
		if err == nil {
			w.stop()
		}
		return err
	})
}

// stop cancels the text in progress, from any thread.
func (w *writer) stop() {
	if cancel := w.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

//export etrun_text_prompt
func etrun_text_prompt(handle C.etrun_text, prompt *C.char, bytes C.size_t, sampling *C.etrun_sampling, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		b, err := bytesOf("prompt", unsafe.Pointer(prompt), bytes)
		if err != nil {
			return err
		}
		var tokens []int
		if len(w.parts) > 0 {
			tokens, err = w.model.EncodeParts(string(b), w.parts, false)
		} else {
			tokens, err = w.model.Encode(string(b))
		}
		if err != nil {
			return err
		}
		return w.start(tokens, nil, nil, sampling)
	})
}

//export etrun_text_tokens
func etrun_text_tokens(handle C.etrun_text, tokens *C.int32_t, n C.size_t, sampling *C.etrun_sampling, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		list, err := listOf("tokens", tokens, n)
		if err != nil {
			return err
		}
		if len(w.parts) > 0 {
			return argument("tokens with media: want a prompt or a chat, in which they have places")
		}
		return w.start(ints(list), nil, nil, sampling)
	})
}

//export etrun_text_chat
func etrun_text_chat(handle C.etrun_text, messages *C.etrun_message, n C.size_t, sampling *C.etrun_sampling, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		if w.chat == nil {
			return w.noChat
		}
		items, err := listOf("messages", messages, n)
		if err != nil {
			return err
		}
		var list []text.Message
		for k, item := range items {
			b, err := bytesOf("content of a message", unsafe.Pointer(item.content), item.content_bytes)
			if err != nil {
				return err
			}
			if item.role == nil {
				return argument("messages[%d].role is NULL", k)
			}
			list = append(list, text.Message{Role: C.GoString(item.role), Content: string(b)})
		}
		if err := w.placeMedia(list); err != nil {
			return err
		}
		tokens, ends, err := w.model.EncodeChat(w.chat, list)
		if err != nil {
			return err
		}
		return w.start(tokens, ends, nil, sampling)
	})
}

// start starts a text. shown are control tokens that have a text in it.
func (w *writer) start(prompt, ends []int, shown map[int]string, s *C.etrun_sampling) error {
	o, err := samplingOf(s)
	if err != nil {
		return err
	}
	if err := w.model.CheckPrompt(prompt, w.parts...); err != nil {
		return err
	}
	w.end()
	o.Ends, o.Shown, w.logProbs = ends, shown, o.LogProbs
	o.Parts, w.parts = w.parts, nil
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel.Store(&cancel)
	w.running = generate(w.session.GenerateTokens(ctx, prompt, o), cancel)
	return nil
}

// end ends the text in progress.
func (w *writer) end() {
	if g := w.running; g != nil {
		g.end()
		w.running = nil
		w.cancel.Store(nil)
	}
}

// samplingOf converts the options of one text.
func samplingOf(s *C.etrun_sampling) (o text.Options, err error) {
	if s == nil {
		return o, nil
	}
	if err := checkReserved(s.reserved[:]); err != nil {
		return o, err
	}
	o = text.Options{Sampling: text.Sampling{Temperature: float64(s.temperature), TopK: int(s.top_k), TopP: float64(s.top_p),
		MinP: float64(s.min_p), Seed: uint64(s.seed), RepetitionPenalty: float64(s.repetition_penalty), PenaltyWindow: int(s.penalty_window),
		PresencePenalty: float64(s.presence_penalty), FrequencyPenalty: float64(s.frequency_penalty)},
		MaxTokens: int(s.max_tokens), IgnoreEOS: s.ignore_eos != 0, Lookup: int(s.lookup), LogProbs: s.log_probs != 0}
	if o.Form, err = formOf(s); err != nil {
		return o, err
	}
	o.Stop, err = stringsOf("sampling.stop", s.stop, s.n_stop)
	return o, err
}

// formOf returns the form of a text, nil for none.
func formOf(s *C.etrun_sampling) (*text.Form, error) {
	var form *text.Form
	for _, f := range []struct {
		name, source string
		make         func(source string) (*text.Form, error)
	}{
		{"schema", textOf(s.schema), func(source string) (*text.Form, error) { return text.SchemaForm([]byte(source)) }},
		{"grammar", textOf(s.grammar), func(source string) (*text.Form, error) { return text.GrammarForm(source) }},
		{"pattern", textOf(s.pattern), func(source string) (*text.Form, error) { return text.PatternForm(source) }},
	} {
		if f.source == "" {
			continue
		}
		if form != nil {
			return nil, argument("sampling: at most one of schema, grammar and pattern")
		}
		var err error
		if form, err = f.make(f.source); err != nil {
			return nil, argument("sampling.%s: %v", f.name, err)
		}
	}
	return form, nil
}

// generation is a text in progress. Its goroutine computes a piece for each pull: coroutines of
// [iter.Pull2] cannot be resumed by callbacks of several threads of C.
type generation struct {
	pull   chan struct{}
	pieces chan result
	cancel context.CancelFunc
}

type result struct {
	piece text.Piece
	err   error
	panic any
}

func generate(pieces iter.Seq2[text.Piece, error], cancel context.CancelFunc) *generation {
	g := &generation{make(chan struct{}), make(chan result), cancel}
	go g.run(pieces)
	return g
}

func (g *generation) run(pieces iter.Seq2[text.Piece, error]) {
	defer close(g.pieces)
	defer func() {
		if fault := recover(); fault != nil {
			g.pieces <- result{panic: fault}
		}
	}()
	if _, more := <-g.pull; !more {
		return
	}
	for p, err := range pieces {
		g.pieces <- result{piece: p, err: err}
		if _, more := <-g.pull; !more {
			return
		}
	}
}

// next returns the next piece; its tokens are valid until the next call. ok is false after the last.
func (g *generation) next() (r result, ok bool) {
	g.pull <- struct{}{}
	r, ok = <-g.pieces
	if r.panic != nil {
		panic(r.panic)
	}
	return r, ok
}

// end waits until the goroutine has ended. It must not be computing a piece.
func (g *generation) end() {
	g.cancel()
	close(g.pull)
	for range g.pieces {
	}
}

//export etrun_text_next
func etrun_text_next(handle C.etrun_text, piece *C.etrun_piece, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		if piece == nil {
			return argument("piece is NULL")
		}
		if w.running == nil {
			return argument("no text is in progress: it has ended, or was not started")
		}
		done := true
		defer func() {
			if done {
				w.end()
			}
		}()
		r, ok := w.running.next()
		if !ok {
			return argument("the text has ended")
		}
		*piece = w.memory.fill(&r.piece, w.logProbs)
		done = r.err != nil || r.piece.Finish != ""
		return r.err
	})
}
