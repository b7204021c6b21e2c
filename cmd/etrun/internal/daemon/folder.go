package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/serve"
)

// maxEntries bounds the entries of a folder of models, and of each folder in it.
const maxEntries = 10_000

// optionsFile has the options of a model in a folder.
const optionsFile = "model.json"

// versionForm is the form of folders with a version of a model.
var versionForm = lazy.Pattern(`^[1-9][0-9]{0,17}$`)

// refusedKeys are flags that the file of a model in a folder cannot set: the folder decides, or the owner of the server. A mapped file
// that is truncated would end the server.
var refusedKeys = []string{"name", "path", "trust", "isolate-memory", "weights-cache", "qparams", "device", "fvp", "mmap"}

// pathKeys are flags with files beside that file.
var pathKeys = []string{"data", "tokenizer", "template"}

// entry is a model of a folder.
type entry struct {
	root    string // the folder of all models
	name    string
	path    string // of the file or folder that is the model
	program string
	options string // the file with its options, empty if there is none
	version string // number of its version, empty if it has none
	err     error  // why it is none
}

// errTwice means that another entry of the folder has the same name.
var errTwice = errors.New("the same name")

// entriesOf returns the models of a folder, by name: files NAME.pte and NAME.bpte with NAME.json, and folders.
func entriesOf(folder string) (list []entry, err error) {
	files, err := readFolder(folder, maxEntries)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(folder, f)
		info, err := os.Stat(path)
		switch {
		case err != nil: // removed meanwhile, or a link to nothing
		case info.IsDir():
			e := folderEntry(f, path)
			e.path = path
			list = append(list, e)
		case isProgram(f):
			name := strings.TrimSuffix(f, filepath.Ext(f))
			list = append(list, entry{name: name, path: path, program: path, options: existing(filepath.Join(folder, name+".json"))})
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].name < list[k].name }) // m-b.pte is between m and m.pte
	for i := range list {
		list[i].root = folder
		if i > 0 && list[i-1].name == list[i].name {
			list[i].err = fmt.Errorf("%s and %s have %w: %q", list[i-1].path, list[i].path, errTwice, list[i].name)
		}
	}
	return list, nil
}

// readFolder returns the sorted names in a folder of at most so many entries, without hidden and temporary ones.
func readFolder(path string, most int) (names []string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0) // to open a FIFO would wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err = f.Readdirnames(most + 1)
	if len(names) > most {
		return nil, fmt.Errorf("%s: more than %d entries", path, most)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") })
	slices.Sort(names)
	if len(names) == 0 {
		err = nil // io.EOF
	}
	return names, err
}

// folderEntry returns the model in a folder, or in that of its greatest version.
func folderEntry(name, path string) entry {
	files, err := readFolder(path, maxEntries)
	if err != nil {
		return entry{name: name, err: err}
	}
	program, err := programIn(path, files)
	if err != nil || program != "" {
		return entry{name: name, program: program, options: existing(filepath.Join(path, optionsFile)), err: err}
	}
	versions := slices.DeleteFunc(files, func(f string) bool { return !versionForm().MatchString(f) })
	slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
	for _, v := range versions {
		within := filepath.Join(path, v)
		files, err := readFolder(within, maxEntries)
		if err == nil {
			program, err = programIn(within, files)
		}
		if err != nil || program != "" {
			options := existing(filepath.Join(within, optionsFile))
			if options == "" {
				options = existing(filepath.Join(path, optionsFile))
			}
			return entry{name: name, program: program, options: options, version: v, err: err}
		}
	}
	return entry{name: name, err: fmt.Errorf("%s: no program, want model.pte, model.bpte, or folders 1, 2, … with one", path)}
}

func number(version string) int64 {
	n, _ := strconv.ParseInt(version, 10, 64) // has the form of one
	return n
}

// programIn returns the program among the files of a folder: model.pte, model.bpte, or the only one. Empty if there is none.
func programIn(folder string, files []string) (string, error) {
	programs := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !isProgram(f) })
	for _, usual := range []string{"model.pte", "model.bpte"} {
		if slices.Contains(programs, usual) {
			programs = []string{usual}
		}
	}
	switch len(programs) {
	case 0:
		return "", nil
	case 1:
		return filepath.Join(folder, programs[0]), nil
	}
	return "", fmt.Errorf("%s: %d programs, want one, or one with the name model.pte", folder, len(programs))
}

func isProgram(name string) bool {
	return slices.Contains([]string{".pte", ".bpte"}, filepath.Ext(name))
}

// existing returns a path, or nothing if there is no such file. A link to nothing is one, which its reader refuses.
func existing(path string) string {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// model returns the model of an entry: options and limits are those of the server, which its file may override.
func (e *entry) model(ctx context.Context, options *session.Options, limits *Limits) (*Model, error) {
	if e.err != nil {
		return nil, e.err
	}
	if err := serve.CheckName(e.name); err != nil {
		return nil, err
	}
	if err := within(e.root, e.program, e.options); err != nil {
		return nil, err
	}
	if e.options == "" {
		m := &Model{Name: e.name, Path: e.program, Version: e.version, Options: *options, Limits: *limits, folder: e.root}
		return m, m.complete()
	}
	object, err := e.settings(ctx, limits)
	if err != nil {
		return nil, err
	}
	m, err := modelOf(object, options, limits, e.program)
	if err != nil {
		return nil, err
	}
	if limits.Isolate && !m.Isolate {
		return nil, session.Usage("%s: isolate false, but the server has --isolate", e.options)
	}
	m.Name, m.Version, m.described, m.folder = e.name, e.version, e.options, e.root
	return m, nil
}

// confined returns a context with which the files of a model of a folder must be in it when they are opened: links may have changed since
// the look at the folder.
func (m *Model) confined(ctx context.Context) context.Context { return openfile.Within(ctx, m.folder) }

// settings reads the file with the options. Its paths are relative to its folder, and within it.
func (e *entry) settings(ctx context.Context, limits *Limits) (object []setting, err error) {
	ctx = openfile.Within(ctx, e.root)
	text, err := openfile.ReadFile(ctx, e.options, openfile.Rules{Limit: maxConfig})
	if err == nil {
		err = verifySignature(ctx, limits.Trust, e.options, bytes.NewReader(text))
	}
	if err != nil {
		return nil, err
	}
	r := &configReader{e.options, text, jsontext.NewDecoder(bytes.NewBuffer(text))}
	if object, err = r.only("the options", nil); err != nil {
		return nil, err
	}
	for i := range object {
		s := &object[i]
		switch {
		case slices.Contains(refusedKeys, s.name):
			return nil, s.fault("not in the file of a model in a folder")
		case slices.Contains(pathKeys, s.name):
			err := s.within(filepath.Dir(e.options))
			if err == nil {
				err = within(e.root, s.words...)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return object, nil
}

// within returns an error if a path, or a file in it if it is a folder, is a link to something outside of a folder: who can write
// to a folder of models must not have other files read, of which errors quote parts. Paths without a file are left to their readers.
func within(folder string, paths ...string) error {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	for i := 0; i < len(paths); i++ {
		target, err := filepath.EvalSymlinks(paths[i])
		if err != nil || paths[i] == "" {
			continue
		}
		if rel, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(rel) {
			return session.Usage("%s: a link out of the folder %s; models and their files must be in it", paths[i], folder)
		}
		if info, err := os.Stat(target); err == nil && info.IsDir() {
			names, err := readFolder(target, maxEntries)
			if err != nil {
				return err
			}
			for _, name := range names {
				if file := filepath.Join(target, name); !isFolder(file) {
					paths = append(paths, file)
				}
			}
		}
	}
	return nil
}

// isFolder reports whether a path is a folder, or a link to one.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// within makes the paths of a setting relative to a folder, which they may not leave.
func (s *setting) within(folder string) error {
	for i, word := range s.words {
		if word != "" && !filepath.IsLocal(word) {
			return s.fault("%q, want a file in %s", word, folder)
		}
		path := filepath.Join(folder, word)
		if word != "" && (s.name != "template" || existing(path) != "") { // a template may be a name
			s.words[i] = path
		}
	}
	return nil
}
