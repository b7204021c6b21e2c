package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// document is a Markdown file.
type document struct {
	path     string // relative to the root, with slashes
	blocks   []codeBlock
	headings []string
	links    []string // outside of code
}

// codeBlock is a fenced block of code.
type codeBlock struct {
	language string
	reason   string // why its commands are not tested, empty if they are
	line     int    // of the opening fence
	lines    []string
}

// readDocuments returns the Markdown files of the project; generated ones are included.
func readDocuments(t *testing.T) (list []*document) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "lib" || name == "dist") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			relative, _ := filepath.Rel(root, path)
			list = append(list, parseDocument(filepath.ToSlash(relative), readText(t, relative)))
		}
		return nil
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%v, %d documents", err, len(list))
	}
	return list
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

func parseDocument(path, text string) *document {
	d := &document{path: path}
	var block *codeBlock
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && block == nil:
			language, reason, _ := strings.Cut(info, notTested)
			block = &codeBlock{language: language, reason: reason, line: i + 1}
		case fence:
			d.blocks, block = append(d.blocks, *block), nil
		case block != nil:
			block.lines = append(block.lines, line)
		case strings.HasPrefix(line, "#"):
			d.headings = append(d.headings, strings.TrimSpace(strings.TrimLeft(line, "#")))
		default:
			for _, m := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				d.links = append(d.links, m[1])
			}
		}
	}
	return d
}

// hasAnchor reports whether a heading has the anchor that GitHub makes of it.
func (d *document) hasAnchor(anchor string) bool {
	seen := make(map[string]int)
	for _, heading := range d.headings {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(heading))
		if n := seen[slug]; n > 0 {
			slug += "-" + strconv.Itoa(n)
		}
		if seen[slug]++; slug == anchor {
			return true
		}
	}
	return false
}

func TestDocumentLinks(t *testing.T) {
	documents := readDocuments(t)
	for _, d := range documents {
		for _, link := range d.links {
			if err := checkLink(documents, d, link); err != nil {
				t.Errorf("%s: link %s: %v", d.path, link, err)
			}
		}
	}
}

// checkLink resolves a link to a file or folder of the project, and to a heading. Links to
// other sites must be well-formed.
func checkLink(documents []*document, from *document, link string) error {
	if strings.Contains(link, ":") {
		u, err := url.Parse(link)
		if err == nil && (u.Scheme != "https" || u.Host == "") {
			err = fmt.Errorf("want a path or https://")
		}
		return err
	}
	file, anchor, _ := strings.Cut(link, "#")
	to := from.path
	if file != "" {
		to = filepath.ToSlash(filepath.Join(filepath.Dir(from.path), file))
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil || anchor == "" {
		return err
	}
	at := slices.IndexFunc(documents, func(d *document) bool { return d.path == to })
	if at < 0 || !documents[at].hasAnchor(anchor) {
		return fmt.Errorf("no heading for #%s in %s", anchor, to)
	}
	return nil
}

// testedElsewhere are the documents whose commands another test runs.
var testedElsewhere = map[string]string{"docs/serve.md": "TestServeDocument", "docs/serve-reference.md": "TestServeDocument",
	"docs/serve-operation.md": "TestServeDocument", "docs/clients.md": "TestClientSnippets"}

// hasCommands reports whether TestDocumentCommands runs the commands of a document: README.md,
// CONTRIBUTING.md and docs/*.md.
func (d *document) hasCommands() bool {
	folder := filepath.Dir(d.path)
	return testedElsewhere[d.path] == "" && (folder == "." || folder == "docs")
}

// shownCommand is a command in a block, with the output that the block shows.
type shownCommand struct {
	text   string
	line   int
	reason string // why it is not tested, empty if it is
	output []string
}

// notTested follows the language of a block whose commands cannot run in the tests, before the reason. No reader sees it.
const notTested = " not tested: "

// comment is the rest of a line from a # that follows a space.
var comment = regexp.MustCompile(`\s+#\s.*$`)

// commands returns the commands of a block: the lines with a prompt of a console, all lines
// of a shell script.
func (b *codeBlock) commands() (list []shownCommand) {
	for i, line := range b.lines {
		line = strings.TrimRight(line, " ")
		command, prompt := strings.CutPrefix(line, "$ ")
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case prompt || b.language == "sh":
			list = append(list, shownCommand{text: comment.ReplaceAllString(command, ""), line: b.line + 1 + i, reason: b.reason})
		case len(list) > 0:
			list[len(list)-1].output = append(list[len(list)-1].output, line)
		default:
			list = append(list, shownCommand{text: line, line: b.line + 1 + i}) // not a command: reported as one that fails
		}
	}
	return list
}

// Every command in a console or sh block runs, or has a reason why it is not tested. The
// commands of a document share a folder.
func TestDocumentCommands(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, d := range readDocuments(t) {
		var list []shownCommand
		for _, b := range d.blocks {
			if d.hasCommands() && (b.language == "console" || b.language == "sh") {
				list = append(list, b.commands()...)
			}
		}
		if len(list) == 0 {
			continue
		}
		t.Run(d.path, func(t *testing.T) {
			var programs []shownCommand
			for _, c := range list {
				if args, ok := c.etrun(); ok {
					c.text = args
					programs = append(programs, c)
				} else if err := c.check(t); err != nil {
					t.Errorf("%s:%d: %s: %v", d.path, c.line, c.text, err)
				}
			}
			t.Chdir(t.TempDir())
			for _, name := range []string{"testdata", "text", "speech"} {
				must(t, os.Symlink(filepath.Join(checkout, name), name))
			}
			for _, c := range programs {
				if err := c.run(); err != nil {
					t.Errorf("%s:%d: etrun %s: %v", d.path, c.line, c.text, err)
				}
			}
		})
		ran += len(list)
	}
	if ran < 60 {
		t.Errorf("%d commands found", ran)
	}
}

// libraryLoaded reports whether libXNNPACK can be opened here.
func libraryLoaded() bool {
	_, err := xnn.Open("")
	return err == nil
}

// etrun returns the arguments of a command of etrun.
func (c *shownCommand) etrun() (args string, ok bool) {
	args, ok = strings.CutPrefix(c.text, "bin/etrun ")
	if !ok {
		args, ok = strings.CutPrefix(c.text, "etrun ")
	}
	return args, ok
}

// run runs the program with the command's arguments, and compares its output with the lines
// shown. If the command is not tested, or asks for a libXNNPACK that is not there, its flags
// are still parsed.
func (c *shownCommand) run() error {
	var out, notes bytes.Buffer
	if c.reason != "" || strings.Contains(c.text, "--xnnpack native") && !libraryLoaded() {
		return parseFlags(words(c.text))
	}
	if code := run(words(measuredBriefly(c.text)), strings.NewReader(""), &out, &notes); code != 0 || out.Len() == 0 {
		return fmt.Errorf("exit code %d, %d bytes on stdout, stderr:\n%s", code, out.Len(), notes.String())
	}
	rest := out.String()
	for _, line := range c.output {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*")
		at := regexp.MustCompile(`(?m)^ *` + pattern + ` *$`).FindStringIndex(rest)
		if at == nil {
			return fmt.Errorf("the line %q is not in the output, or in another order:\n%s", line, out.String())
		}
		rest = rest[at[1]:]
	}
	return nil
}

// measuredTime is how long a command is to measure.
var measuredTime = regexp.MustCompile(`--duration \S+`)

// measuredBriefly returns a command that prints the same, but for its figures, sooner.
func measuredBriefly(command string) string {
	return measuredTime.ReplaceAllString(command, "--duration 10ms")
}

// parseFlags checks that a command and its flags exist.
func parseFlags(args []string) error {
	c, rest, err := newRoot(&app{}).Find(args)
	if err != nil {
		return err
	}
	return c.ParseFlags(rest)
}

// check checks commands of make and go: their targets, packages and tests exist. CI runs
// them itself.
func (c *shownCommand) check(t *testing.T) error {
	fields := words(strings.NewReplacer("'", `"`).Replace(c.text))
	for len(fields) > 1 && strings.Contains(fields[0], "=") {
		fields = fields[1:] // environment
	}
	switch {
	case c.reason != "":
		return nil
	case fields[0] == "make":
		return checkMake(readText(t, "Makefile"), fields[1:])
	case fields[0] == "go" && len(fields) > 2:
		return checkGo(fields[2:])
	}
	return fmt.Errorf("the test cannot run it; write the reason behind the block's language, as ```sh%sREASON", notTested)
}

func checkMake(makefile string, args []string) error {
	for _, arg := range args {
		pattern := "(?m)^" + regexp.QuoteMeta(arg) + ":"
		if variable, _, ok := strings.Cut(arg, "="); ok {
			pattern = "(?m)^" + regexp.QuoteMeta(variable) + ` *\?=`
		}
		if !regexp.MustCompile(pattern).MatchString(makefile) {
			return fmt.Errorf("no %s in the Makefile", arg)
		}
	}
	return nil
}

// checkGo checks the packages of a command of go, and that -run, -fuzz and -bench match a
// function of theirs.
func checkGo(args []string) error {
	var names, folders []string
	for i, arg := range args {
		if arg == "." || strings.HasPrefix(arg, "./") {
			folders = append(folders, filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(arg, "/..."))))
		}
		if i > 0 && slices.Contains([]string{"-run", "-fuzz", "-bench"}, args[i-1]) && arg != "^$" {
			names = append(names, arg)
		}
	}
	var functions []string
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			return err
		}
		files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`).FindAllSubmatch(text, -1) {
				functions = append(functions, string(m[1]))
			}
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(functions, regexp.MustCompile(name).MatchString) {
			return fmt.Errorf("no test matches %s", name)
		}
	}
	return nil
}

func TestDocumentJSON(t *testing.T) {
	for _, d := range readDocuments(t) {
		for _, b := range d.blocks {
			if b.language == "json" && !json.Valid([]byte(strings.Join(b.lines, "\n"))) {
				t.Errorf("%s:%d: invalid JSON", d.path, b.line)
			}
		}
	}
}
