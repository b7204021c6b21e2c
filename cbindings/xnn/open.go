package xnn

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// Library is an open libXNNPACK, initialised and ready. It is safe for concurrent
// use and never closed: its threads may run code in it at any time.
type Library struct {
	Path   string // the file, or the soname where the system's linker found it
	Soname *Soname
	// PoolStalls says that the thread pool loaded with the library is one of the
	// builds that stall for milliseconds where a core is busy: use one thread.
	PoolStalls bool
	Functions
}

// Reasons why no library is open; match with errors.Is.
var (
	ErrAbsent  = errors.New("libXNNPACK is not installed") // nothing was found
	ErrRefused = errors.New("libXNNPACK is unusable")      // something was found, but not usable
)

// OpenError says what was tried. It is ErrAbsent or ErrRefused.
type OpenError struct {
	Reason error
	Tried  []Attempt
}

// Attempt is one place where the library was looked for.
type Attempt struct {
	Path   string
	Absent bool // nothing is there
	Err    error
}

func (e *OpenError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	sep := ": "
	for _, a := range e.Tried {
		if a.Absent && e.Reason == ErrRefused {
			continue
		}
		fmt.Fprintf(&b, "%s%s: %v", sep, a.Path, a.Err)
		sep = "; "
	}
	return b.String()
}

// Unwrap is the reason.
func (e *OpenError) Unwrap() error { return e.Reason }

// EnvPath names the environment variable that holds the library's file or folder.
const EnvPath = "ETRUN_XNNPACK"

// opened holds one library, or its failure, per place asked for.
var opened struct {
	sync.Mutex
	at    map[string]outcome
	found map[string]bool // see Found
}

type outcome struct {
	lib *Library
	err error
}

// Named reports that the caller or the environment names the place of the library:
// then nowhere else is looked, and a failure is not to be passed over.
func Named(path string) bool { return path != "" || os.Getenv(EnvPath) != "" }

// Open finds and opens the library. path is its file or the folder that holds it;
// with an empty path the search goes through the environment variable EnvPath, the
// folder lib beside the executable and beside its folder, the folder lib of the
// checkout that the executable was built in, UserFolder, and the system's linker. The
// current folder is never looked at. A given path or variable is the only place looked
// at. The same path gives the same library, and the same *OpenError.
func Open(path string) (*Library, error) {
	if path == "" {
		path = os.Getenv(EnvPath)
	}
	opened.Lock()
	defer opened.Unlock()
	if o, ok := opened.at[path]; ok {
		return o.lib, o.err
	}
	if opened.at == nil {
		opened.at = make(map[string]outcome)
	}
	var o outcome
	o.lib, o.err = search(places(path))
	opened.at[path] = o
	return o.lib, o.err
}

// Found reports that the place which path or the environment names has a library of a known
// version. It opens none: whether the library works is not known by that. A place is looked at
// once: a program has many graphs to ask for.
func Found(path string) bool {
	if path == "" {
		path = os.Getenv(EnvPath)
	}
	if !dynamicLoading || path == "" {
		return false
	}
	opened.Lock()
	defer opened.Unlock()
	found, known := opened.found[path]
	if !known {
		found = hasLibrary(path)
		if opened.found == nil {
			opened.found = make(map[string]bool)
		}
		opened.found[path] = found
	}
	return found
}

// hasLibrary reports a file, or a folder with one, whose soname is known.
func hasLibrary(path string) bool {
	for _, s := range sonames {
		if file := filepath.Join(path, s.Name); exists(file) {
			path = file
			break
		}
	}
	name, err := sonameOf(path)
	return err == nil && knownSoname(name) != nil
}

// Forget makes the next Open look again, after a library was put into its place. Libraries
// that are open stay so.
func Forget() {
	opened.Lock()
	defer opened.Unlock()
	clear(opened.at)
	clear(opened.found)
}

// places lists folders and files to look at, in order; the empty one is the system.
func places(path string) []string {
	if path != "" {
		return []string{path}
	}
	var list []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dir := filepath.Dir(exe)
		list = append(list, filepath.Join(dir, "lib"), filepath.Join(filepath.Dir(dir), "lib"))
	}
	for _, dir := range []string{sourceFolder(), UserFolder()} {
		if dir != "" && owned(dir) {
			list = append(list, dir)
		}
	}
	return append(list, "")
}

// UserFolder is where programs that `go install` made find the library: etrun/lib in
// XDG_DATA_HOME or else in ~/.local/share. It is empty where there is no home.
func UserFolder() string {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "etrun", "lib")
}

// sourceFolder is lib of the checkout that this file was compiled in, for programs that
// `go run` and `go test` start. It is empty where the build left paths out (-trimpath).
func sourceFolder() string {
	_, file, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(file) {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "lib")
}

// owned reports a folder that only its owner can write to, who is this user or root:
// nobody else can have put a library there.
func owned(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

func search(places []string) (*Library, error) {
	failure := &OpenError{Reason: ErrAbsent}
	for _, place := range places {
		var lib *Library
		var attempt Attempt
		if place == "" {
			lib, attempt = openSystem()
		} else {
			lib, attempt = openPlace(place)
		}
		if lib != nil {
			return lib, nil
		}
		if !attempt.Absent {
			failure.Reason = ErrRefused
		}
		failure.Tried = append(failure.Tried, attempt)
	}
	return nil, failure
}

// openPlace opens a file, or the first known library of a folder.
func openPlace(place string) (*Library, Attempt) {
	info, err := os.Stat(place)
	if err != nil {
		return nil, Attempt{Path: place, Absent: true, Err: errors.New("not there")}
	}
	if !info.IsDir() {
		return openFile(place)
	}
	for _, s := range sonames {
		if file := filepath.Join(place, s.Name); exists(file) {
			return openFile(file)
		}
	}
	return nil, otherVersions(filepath.Join(place, "libXNNPACK.so*"))
}

// openSystem asks the dynamic linker for the known names.
func openSystem() (*Library, Attempt) {
	for _, s := range sonames {
		handle, err := dlopen(s.Name, false)
		if err != nil {
			continue
		}
		lib, err := load(handle, s, s.Name)
		return lib, Attempt{Path: s.Name, Err: err}
	}
	if !dynamicLoading {
		return nil, Attempt{Path: "system", Absent: true, Err: errors.New("this program is built without dynamic loading")}
	}
	a := otherVersions("/usr/lib/*/libXNNPACK.so.*")
	if a.Absent {
		a.Path = "system"
	}
	return nil, a
}

// otherVersions reports a library of another version by its name.
func otherVersions(pattern string) Attempt {
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		return Attempt{Path: filepath.Dir(pattern), Absent: true, Err: errors.New("no libXNNPACK")}
	}
	return Attempt{Path: found[0], Err: unknownVersion(filepath.Base(found[0]))}
}

func unknownVersion(name string) error {
	var known []string
	for _, s := range sonames {
		known = append(known, s.Name)
	}
	return fmt.Errorf("version %q is not known, want %s", name, strings.Join(known, " or "))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// openFile opens one file after reading its soname, with the companions beside it
// loaded first, so that its own needs resolve to them and not to the system's.
func openFile(path string) (*Library, Attempt) {
	refuse := func(err error) (*Library, Attempt) { return nil, Attempt{Path: path, Err: err} }
	if !dynamicLoading {
		return refuse(errors.New("this program is built without dynamic loading"))
	}
	name, err := sonameOf(path)
	if err != nil {
		return refuse(err)
	}
	soname := knownSoname(name)
	if soname == nil {
		return refuse(unknownVersion(name))
	}
	for _, companion := range []string{"libcpuinfo.so.0", "libpthreadpool.so.0"} {
		if file := filepath.Join(filepath.Dir(path), companion); exists(file) {
			if _, err := dlopen(file, true); err != nil {
				return refuse(err)
			}
		}
	}
	handle, err := dlopen(path, false)
	if err != nil {
		return refuse(err)
	}
	lib, err := load(handle, soname, path)
	return lib, Attempt{Path: path, Err: err}
}

// sonameOf reads DT_SONAME of a shared library.
func sonameOf(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	names, err := f.DynString(elf.DT_SONAME)
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", errors.New("no soname")
	}
	return names[0], nil
}

// load resolves every function and initialises the library.
func load(handle uintptr, soname *Soname, path string) (*Library, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("%s is not supported", runtime.GOARCH)
	}
	addresses, err := resolve(handle)
	if err != nil {
		return nil, err
	}
	lib := &Library{Path: path, Soname: soname}
	bind(&lib.Functions, addresses)
	lib.PoolStalls = dlsym(handle, poolWithoutStall) == 0
	if err := lib.Initialize(0).Error("xnn_initialize"); err != nil {
		return nil, err
	}
	return lib, nil
}

// poolWithoutStall is a function that pthreadpool has since the version whose
// waiting threads yield to others.
const poolWithoutStall = "pthreadpool_create_v2"

// resolve finds the address of every function of the table by its C name.
func resolve(handle uintptr) (map[string]uintptr, error) {
	table := reflect.TypeFor[Functions]()
	found := make(map[string]uintptr, table.NumField())
	var absent []string
	for i := range table.NumField() {
		name := table.Field(i).Tag.Get("c")
		if found[name] = dlsym(handle, name); found[name] == 0 {
			absent = append(absent, name)
		}
	}
	if absent != nil {
		return nil, fmt.Errorf("functions missing: %s", strings.Join(absent, ", "))
	}
	return found, nil
}

// BuildIdentifier is a digest of the sources that the library was built from. Packed
// weights are only valid for the library that packed them.
func (l *Library) BuildIdentifier() []byte {
	n := l.BuildIdentifierSize()
	p := l.BuildIdentifierData()
	if p == nil || n == 0 || n > 1024 {
		return nil
	}
	return bytes.Clone(unsafe.Slice((*byte)(p), n))
}
