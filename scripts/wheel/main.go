// Command wheel builds a wheel of the Python package from its files and a built libetrun:
//
//	wheel -version v0.1.0 -library libetrun.so.2 -licenses FOLDER -out FOLDER python/etrun
//
// The platform tag is computed from the library: manylinux with the newest version of glibc whose
// symbols it needs, if it needs no libraries beyond those of the policy (PEP 600), else linux. Times
// are SOURCE_DATE_EPOCH, entries are sorted: the same files give the same bytes.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	var w wheel
	flag.StringVar(&w.release, "version", "", "version of the release, as git describes it")
	library := flag.String("library", "", "file of libetrun")
	licenses := flag.String("licenses", "", "folder with the licenses of what the library contains")
	license := flag.String("license", "LICENSE", "license of the package")
	out := flag.String("out", ".", "folder to write to")
	flag.Parse()
	name, err := w.build(flag.Arg(0), *library, *license, *licenses, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wheel:", err)
		os.Exit(1)
	}
	fmt.Println(name)
}

// wheel is a wheel with its files.
type wheel struct {
	release string
	version string // of Python's kind
	tag     string
	files   map[string][]byte
}

const metadata = `Metadata-Version: 2.1
Name: etrun
Version: %s
Summary: Run ExecuTorch programs (.pte)
Home-page: https://github.com/etrun-go/etrun
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy>=1.23; extra == 'numpy'
Description-Content-Type: text/markdown

Runs ExecuTorch programs (.pte), with the names of executorch.runtime. See docs/python.md of https://github.com/etrun-go/etrun.
`

// build writes a wheel and returns its name.
func (w *wheel) build(folder, library, license, licenses, out string) (string, error) {
	needs, err := needsOf(library)
	if err != nil {
		return "", err
	}
	w.version, w.tag, w.files = pythonVersion(w.release), "py3-none-"+needs.platform(), make(map[string][]byte)
	if err := w.addFolder(folder, "etrun"); err != nil {
		return "", err
	}
	info := "etrun-" + w.version + ".dist-info"
	if err := w.add(library, "etrun/"+filepath.Base(library)); err != nil {
		return "", err
	}
	if err := w.add(license, info+"/licenses/LICENSE"); err != nil {
		return "", err
	}
	if licenses != "" {
		if err := w.addFolder(licenses, info+"/licenses"); err != nil {
			return "", err
		}
	}
	w.files[info+"/METADATA"] = fmt.Appendf(nil, metadata, w.version)
	w.files[info+"/WHEEL"] = fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: etrun\nRoot-Is-Purelib: false\nTag: %s\n", w.tag)
	name := fmt.Sprintf("etrun-%s-%s.whl", w.version, w.tag)
	archive, err := pack(w.files, info+"/RECORD", epoch())
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(filepath.Join(out, name), archive, 0o644)
}

func (w *wheel) add(file, name string) error {
	data, err := os.ReadFile(file)
	w.files[name] = data
	return err
}

// addFolder adds the files of a folder, without those that Python generates.
func (w *wheel) addFolder(folder, name string) error {
	return filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == "__pycache__" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil || d.IsDir() || strings.HasSuffix(file, ".so.2") {
			return err
		}
		return w.add(file, path.Join(name, filepath.ToSlash(relative)))
	})
}

// epoch is the time of all entries.
func epoch() time.Time {
	seconds, _ := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	return time.Unix(seconds, 0).UTC()
}
