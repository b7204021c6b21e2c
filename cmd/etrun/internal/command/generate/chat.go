package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/text"
)

// chatFlags are the flags of a conversation.
type chatFlags struct {
	chat     bool
	system   string
	template string
}

func (c *chatFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.chat, "chat", false, "chat: answer each line of the input, or with --prompt one message")
	// A TEXT may be empty, see session.RejectEmpty.
	flags.StringVar(&c.system, "system", "", "with --chat: begin with the system message `TEXT`")
	flags.StringVar(&c.template, "template", "",
		"with --chat: chat template, `NAME` or FILE (default: found by the tokenizer's control tokens): "+
			strings.Join(text.Templates(), ", "))
}

// find returns the chat template: the one that is named, that of the folder of the tokenizer, or one for its control tokens.
func (c *chatFlags) find(ctx context.Context, m *text.Model, folder string) (*text.Template, error) {
	if c.template == "" {
		t, err := session.FolderTemplate(ctx, folder, nil)
		if err != nil || t != nil {
			return t, cmp.Or(err, checked(m, t))
		}
		t, err = text.FindTemplate(m.Tokenizer())
		if err != nil {
			return nil, fmt.Errorf("%w; pass --template", err)
		}
		return t, nil
	}
	t, err := session.ChatTemplate(ctx, c.template, nil)
	return t, cmp.Or(err, checked(m, t))
}

// checked reports whether a model can use a template, which may be nil.
func checked(m *text.Model, t *text.Template) error {
	if t == nil {
		return nil
	}
	return m.CheckTemplate(t)
}

// conversation is a chat with its history.
type conversation struct {
	*generateCommand
	session  *text.Session
	template *text.Template
	options  text.Options
	messages []text.Message
	waiting  []*text.Part // of the next message
}

// newConversation returns a conversation that begins with the system message.
func (g *generateCommand) newConversation(ctx context.Context, s *text.Session) (*conversation, error) {
	t, err := g.find(ctx, g.model, g.Tokenizer)
	if err != nil {
		return nil, err
	}
	o, err := g.sampling(g.Seed)
	d := &conversation{generateCommand: g, session: s, template: t, options: o}
	d.reset()
	return d, err
}

// reset removes all messages except the system message.
func (d *conversation) reset() {
	d.messages, d.waiting = nil, d.parts
	if d.system != "" {
		d.messages = []text.Message{{Role: "system", Content: d.system}}
	}
}

// answer writes the reply to a message. Without a reply the message is removed.
func (d *conversation) answer(ctx context.Context, message string) error {
	before := len(d.messages)
	d.messages = append(d.messages, text.UserMessage(message, d.waiting...))
	w := &textWriter{App: d.App, collect: d.JSON, line: !d.asked, logProbs: d.options.LogProbs}
	prompt, ends, err := d.model.EncodeChat(d.template, d.messages)
	if err != nil {
		d.messages = d.messages[:before]
		return err
	}
	o := d.options
	o.Ends, o.Parts = append(o.Ends, ends...), d.parts
	var reply strings.Builder
	w.copyTo = &reply
	end, err := w.copy(d.session.GenerateTokens(ctx, prompt, o))
	if reply.Len() == 0 {
		d.messages = d.messages[:before]
	} else {
		d.messages, d.waiting = append(d.messages, text.Message{Role: "assistant", Content: reply.String()}), nil
	}
	if end.Finish == "" && end.Stats.Generated == 0 {
		return err
	}
	return d.report(w, prompt, end, err)
}

const chatCommands = "/reset forgets the conversation, /exit or the end of input ends it, an interrupt ends a reply"

// converse answers the lines of standard input until its end.
func (d *conversation) converse(ctx context.Context) error {
	in := newLines(d.App)
	defer in.close()
	if in.terminal != nil {
		d.Note("template %s; %s", d.template.Name(), chatCommands)
		var stop func()
		ctx, stop = signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP) // an interrupt ends only a reply
		defer stop()
	}
	for {
		d.Progress.Pause()
		line, err := in.next(ctx)
		if err == io.EOF {
			in.end(d.Out)
			return nil
		}
		if err != nil {
			return err
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "/exit":
			return nil
		case "/reset":
			d.reset()
			continue
		}
		if err := d.exchange(ctx, in.terminal != nil, line); err != nil {
			return err
		}
	}
}

// exchange answers one line. On a terminal an interrupt ends the reply, not the conversation. A message that
// does not fit does not end it either.
func (d *conversation) exchange(ctx context.Context, interactive bool, line string) error {
	if !interactive {
		return d.answer(ctx, line)
	}
	turn, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := d.answer(turn, line)
	switch {
	case err == nil || errors.Is(err, context.Canceled) && ctx.Err() == nil:
		return nil
	case errors.Is(err, etrun.ErrInput):
		d.Note("%v; %s", err, chatCommands)
		return nil
	}
	return err
}

// checkChat validates the flags of a conversation.
func (g *generateCommand) checkChat() error {
	switch {
	case !g.chat && (g.system != "" || g.template != ""):
		return session.Usage("--system and --template need --chat")
	case g.chat && g.tokens != nil:
		return session.Usage("--chat with --tokens; give --prompt, or nothing for a conversation")
	case g.chat && g.JSON && !g.asked:
		return session.Usage("--chat with --json needs --prompt")
	case g.chat && g.echo:
		return session.Usage("--chat with --echo")
	}
	return nil
}
