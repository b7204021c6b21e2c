package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// classes are the error classes whose exit codes docs/errors.md lists.
var classes = map[string]error{
	"ErrFormat": etrun.ErrFormat, "ErrUnsupported": etrun.ErrUnsupported, "ErrMissing": etrun.ErrMissing, "ErrInput": etrun.ErrInput,
	"ErrMemory": etrun.ErrMemory, "ErrExecute": etrun.ErrExecute, "ErrDevice": etrun.ErrDevice, "ErrClosed": etrun.ErrClosed,
	"ErrBusy": etrun.ErrBusy, "ErrPanic": etrun.ErrPanic,
	"tokenizer.ErrFormat": tokenizer.ErrFormat, "tokenizer.ErrUnsupported": tokenizer.ErrUnsupported,
	"tokenizer.ErrText": tokenizer.ErrText, "tokenizer.ErrToken": tokenizer.ErrToken,
}

// rows returns the cells of the page's table rows whose first cell begins with a prefix.
func rows(page, prefix string) (list [][]string) {
	for line := range strings.Lines(page) {
		if line, ok := strings.CutPrefix(line, "| "); ok && strings.HasPrefix(line, prefix) {
			list = append(list, strings.Split(strings.TrimSuffix(strings.TrimSpace(line), " |"), " | "))
		}
	}
	return list
}

// inTable returns the first row whose cell i contains text as code, nil for none.
func inTable(list [][]string, i int, text string) (row []string) {
	for _, row := range list {
		if strings.Contains(row[i], "`"+text+"`") {
			return row
		}
	}
	return nil
}

// TestErrorsPage checks that docs/errors.md lists every exported class and type of the promised
// packages, with its exit code and ExecuTorch's code.
func TestErrorsPage(t *testing.T) {
	page := readText(t, "docs", "errors.md")
	var byCode [][]string
	for _, e := range exits {
		byCode = append(byCode, rows(page, strconv.Itoa(e.code)+" |")...)
	}
	types, reasons := rows(page, "`"), rows(page, "`delegate.Err")
	for _, name := range promisedErrors(t) {
		class, known := classes[name]
		switch {
		case !strings.Contains(name, "Err") || strings.HasSuffix(name, "Error"):
			if inTable(types, 0, name) == nil {
				t.Errorf("type %s is not listed", name)
			}
		case strings.HasPrefix(name, "delegate.") || strings.HasPrefix(name, "kernels."):
			if inTable(append(reasons, types...), 0, name) == nil {
				t.Errorf("%s is not listed", name)
			}
		case !known:
			t.Errorf("%s is not among classes", name)
		default:
			row := inTable(byCode, 1, name)
			if row == nil || row[0] != strconv.Itoa(exitOf(class).code) {
				t.Errorf("%s is in row %q, want exit code %d", name, row, exitOf(class).code)
			}
		}
	}
	code := regexp.MustCompile(`\[(\w+ 0x\w+)\]$`)
	for name, class := range classes {
		if strings.Contains(name, ".") {
			continue
		}
		m := code.FindStringSubmatch((&etrun.LoadError{Class: class, Err: errors.New("x")}).Error())
		if row := inTable(types, 0, m[1]); row == nil || !strings.Contains(row[1], "`"+name+"`") {
			t.Errorf("%s is not in the row of %s", name, m[1])
		}
	}
}

// promisedErrors returns the classes and error types in testdata/api, those of other packages than
// etrun with the package's name.
func promisedErrors(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "testdata", "api", "*.txt"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	declared := regexp.MustCompile(`(?m)^(?:type (\w*Error) struct|var (Err\w+) error)$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		qualifier := name[strings.LastIndex(name, "_")+1:] + "."
		if name == "etrun" {
			qualifier = ""
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names = append(names, qualifier+m[1]+m[2])
		}
	}
	return names
}
