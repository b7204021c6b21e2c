package xnn

import (
	"bytes"
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

	_ "github.com/etrun-go/etrun/internal/platform" // its message

	"github.com/etrun-go/etrun/internal/advice"
)

// Library is an open and initialized libXNNPACK. It is safe for concurrent use and never closed,
// because its threads may run code in it at any time.
type Library struct {
	Path   string // path, or the soname if the dynamic linker found it
	Soname *Soname
	// PoolStalls means that the library's thread pool is a build that stalls for milliseconds when
	// a core is busy: use one thread.
	PoolStalls bool
	Functions
	trim uintptr // the C library's malloc_trim; 0 if it has none
}

// Trim returns freed memory of the C library to the system, if that library has a function for it, as glibc does. It takes a fraction
// of a millisecond, in which other threads may wait to allocate: it is not for the path of calls.
func (l *Library) Trim() {
	if l.trim != 0 {
		trim(l.trim)
	}
}

// Reasons of an OpenError; match with errors.Is.
var (
	ErrAbsent  = errors.New("libXNNPACK is not installed") // no library found
	ErrRefused = errors.New("libXNNPACK is unusable")      // a library was found but is not usable
)

var errNoLoading = errors.New("this program is built without dynamic loading")

// OpenError lists the attempts to open the library. It matches ErrAbsent or ErrRefused.
type OpenError struct {
	Reason   error
	Tried    []Attempt
	Variable string // EnvPath if it names the only place that was searched
}

// Attempt is one location that was searched.
type Attempt struct {
	Path   string
	Absent bool // no library there
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
	if e.Variable != "" {
		fmt.Fprintf(&b, " (the variable %s names it; %s)", e.Variable, advice.Variable)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Reason }

// EnvPath is the environment variable with the path of the library or its folder.
const EnvPath = "ETRUN_XNNPACK"

// opened caches a library or an error per path.
var opened struct {
	sync.Mutex
	at map[string]outcome
}

// located caches the result of Locate per path. Its lock is not that of opened, so that Locate does
// not wait for a library that is being opened.
var located struct {
	sync.Mutex
	at map[string]*Soname
}

type outcome struct {
	lib *Library
	err error
}

// Named reports whether the caller or the environment specifies the library's location: then no
// other location is searched, and a failure must not be ignored.
func Named(path string) bool { return path != "" || os.Getenv(EnvPath) != "" }

// Open finds and opens the library. path is its file or folder. If path is empty, Open searches the
// environment variable EnvPath, the folder lib next to the executable and next to its folder,
// UserFolder, and the dynamic linker's path; never the current folder. If path or the variable is set,
// only that location is searched. The same path returns the same library, or the same *OpenError.
func Open(path string) (*Library, error) {
	variable := ""
	if path == "" {
		path, variable = os.Getenv(EnvPath), EnvPath
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
	lib, failure := search(places(path))
	if o.lib = lib; failure != nil {
		if path != "" {
			failure.Variable = variable
		}
		o.err = failure
	}
	opened.at[path] = o
	return o.lib, o.err
}

// Found reports whether the location given by path or the environment contains a library of a
// supported version, without opening it.
func Found(path string) bool { return Named(path) && Locate(path) != nil }

// Locate returns the version of the library that Open finds in a file or folder, without opening it.
// It returns nil if Open finds none, or finds it with the dynamic linker. Each path is searched once,
// because it is called for every graph of a program.
func Locate(path string) *Soname {
	if path == "" {
		path = os.Getenv(EnvPath)
	}
	if !DynamicLoading {
		return nil
	}
	located.Lock()
	defer located.Unlock()
	s, known := located.at[path]
	if !known {
		s = locate(places(path))
		if located.at == nil {
			located.at = make(map[string]*Soname)
		}
		located.at[path] = s
	}
	return s
}

// locate returns the version of the first library in files and folders.
func locate(places []string) *Soname {
	for _, place := range places {
		if place == "" || !exists(place) {
			continue
		}
		for _, s := range sonames {
			if file := filepath.Join(place, s.Name); exists(file) {
				place = file
				break
			}
		}
		if name, err := sonameOf(place); err == nil && knownSoname(name) != nil {
			return knownSoname(name)
		}
	}
	return nil
}

// Forget makes the next Open search again, after a library was installed. Open libraries remain
// open.
func Forget() {
	opened.Lock()
	clear(opened.at)
	opened.Unlock()
	located.Lock()
	clear(located.at)
	located.Unlock()
}

// places returns the files and folders to search, in order; the empty one is the dynamic linker.
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
	if dir := UserFolder(); dir != "" && owned(dir) {
		list = append(list, dir)
	}
	return append(list, "")
}

// UserFolder returns the folder where programs installed by `go install` find the library:
// etrun/lib in XDG_DATA_HOME, by default ~/.local/share. It is empty without a home directory.
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

// owned reports whether a folder is writable only by its owner, who is this user or root, so that
// no one else can have put a library there.
func owned(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

func search(places []string) (*Library, *OpenError) {
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

// openPlace opens a file, or the first supported library of a folder.
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

// openSystem opens the supported sonames with the dynamic linker.
func openSystem() (*Library, Attempt) {
	for _, s := range sonames {
		handle, err := dlopen(s.Name, false)
		if err != nil {
			continue
		}
		lib, err := load(handle, s, s.Name)
		return lib, Attempt{Path: s.Name, Err: err}
	}
	if !DynamicLoading {
		return nil, Attempt{Path: "system", Absent: true, Err: errNoLoading}
	}
	a := otherVersions("/usr/lib/*/libXNNPACK.so.*")
	if a.Absent {
		a.Path = "system"
	}
	return nil, a
}

// otherVersions reports a library of an unsupported version.
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
	return fmt.Errorf("unsupported version %q, want %s", name, strings.Join(known, " or "))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// openFile checks a file's soname and opens it. Companion libraries next to it are loaded first, so
// that it uses them and not the system's.
func openFile(path string) (*Library, Attempt) {
	refuse := func(err error) (*Library, Attempt) { return nil, Attempt{Path: path, Err: err} }
	if !DynamicLoading {
		return refuse(errNoLoading)
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

// load resolves all functions and initializes the library.
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
	lib.trim = dlsym(handle, "malloc_trim")
	if err := lib.Initialize(allocator()).Error("xnn_initialize"); err != nil {
		return nil, err
	}
	return lib, nil
}

// poolWithoutStall is a function that pthreadpool has since the version whose waiting threads
// yield.
const poolWithoutStall = "pthreadpool_create_v2"

// resolve returns the address of every function of the table by its C name.
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

// BuildIdentifier returns a digest of the sources that the library was built from. Packed weights
// are only valid for the library that packed them.
func (l *Library) BuildIdentifier() []byte {
	n := l.BuildIdentifierSize()
	p := l.BuildIdentifierData()
	if p == nil || n == 0 || n > 1024 {
		return nil
	}
	return bytes.Clone(unsafe.Slice((*byte)(p), n))
}
