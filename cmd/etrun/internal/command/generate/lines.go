package generate

import (
	"bufio"
	"context"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
)

// lines reads the lines of standard input; on a terminal with line editing and a history.
type lines struct {
	in       *bufio.Scanner // if standard input is no terminal
	terminal *term.Terminal
	fd       int
	saved    *term.State // settings of the terminal while a line is edited
}

// maxLine is the maximum length of a line.
const maxLine = 1 << 20

func newLines(a *cli.App) *lines {
	f, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		l := &lines{in: bufio.NewScanner(a.In)}
		l.in.Buffer(nil, maxLine)
		return l
	}
	return &lines{fd: int(f.Fd()), terminal: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, a.Out}, "> ")}
}

// next returns the next line, io.EOF at the end, or the cause of ctx.
func (l *lines) next(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	if l.terminal != nil {
		if err := l.edit(); err != nil {
			return "", err
		}
		defer l.close()
	}
	read := make(chan result, 1) // the read may outlive ctx
	go func() {
		line, err := l.read()
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (l *lines) read() (string, error) {
	if l.terminal != nil {
		return l.terminal.ReadLine()
	}
	if l.in.Scan() {
		return l.in.Text(), nil
	}
	if err := l.in.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

// end moves a terminal to the next line after the end of input.
func (l *lines) end(w io.Writer) {
	if l.terminal != nil {
		_, _ = io.WriteString(w, "\n")
	}
}

// edit turns line editing on.
func (l *lines) edit() (err error) {
	if width, height, err := term.GetSize(l.fd); err == nil {
		_ = l.terminal.SetSize(width, height) // fails for sizes below 1 only
	}
	l.saved, err = term.MakeRaw(l.fd)
	return err
}

// close turns line editing off.
func (l *lines) close() {
	if l.saved != nil {
		_ = term.Restore(l.fd, l.saved) // the terminal may be gone
		l.saved = nil
	}
}
