// Command bom writes what a release says about the modules in its programs: a bill of
// materials (CycloneDX 1.6, JSON), and the licenses of all modules.
//
//	go run ./bom -version v0.1.0 -out FOLDER PROGRAM...
//
// It takes the modules from the programs themselves and the licenses from the module cache,
// and fails where a module has no license that it knows.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2/assets"
)

func main() {
	version := flag.String("version", "", "the release")
	out := flag.String("out", ".", "the folder to write to")
	flag.Parse()
	if err := run(*version, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bom:", err)
		os.Exit(1)
	}
}

func run(version, out string, programs []string) error {
	main, modules, err := modulesOf(programs)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{Type: cdx.ComponentTypeApplication, BOMRef: main,
		Name: main, Version: version, PackageURL: "pkg:golang/" + main + "@" + version}}
	var components []cdx.Component
	for _, m := range modules {
		texts, names, err := licenses(m)
		if err != nil {
			return err
		}
		components = append(components, component(m, names))
		for name, text := range texts {
			path := filepath.Join(out, "licenses", filepath.FromSlash(m.Path), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return err
			}
		}
	}
	bom.Components = &components
	f, err := os.Create(filepath.Join(out, "etrun.cdx.json"))
	if err != nil {
		return err
	}
	err = cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return cmp.Or(err, f.Close())
}

// modulesOf lists the modules that any of the programs has, by path, Go's own library with them.
func modulesOf(programs []string) (main string, list []*debug.Module, err error) {
	found := make(map[string]*debug.Module)
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", p, err)
		}
		main = info.Main.Path
		found["std"] = &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range info.Deps {
			found[m.Path] = m
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[path])
	}
	return main, list, nil
}

func component(m *debug.Module, names []string) cdx.Component {
	var choices cdx.Licenses
	for _, n := range names {
		choices = append(choices, cdx.LicenseChoice{License: &cdx.License{ID: n}})
	}
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: m.Path, Name: m.Path, Version: m.Version,
		PackageURL: "pkg:golang/" + m.Path + "@" + m.Version, Licenses: &choices}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "etrun:go.sum", Value: m.Sum}}
	}
	return c
}

// licenses reads the files of a module that hold its terms, and names those (SPDX).
func licenses(m *debug.Module) (texts map[string][]byte, names []string, err error) {
	dir, err := folder(m)
	if err != nil {
		return nil, nil, err
	}
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		return nil, nil, err
	}
	texts = make(map[string][]byte)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !isTerms(e.Name()) || e.IsDir() {
			continue
		}
		if texts[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, nil, err
		}
		for _, match := range classifier.Match(texts[e.Name()]).Matches {
			if match.MatchType == "License" && !slices.Contains(names, match.Name) {
				names = append(names, match.Name)
			}
		}
	}
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s@%s: no known license in %s", m.Path, m.Version, dir)
	}
	slices.Sort(names)
	return texts, names, err
}

func isTerms(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "UNLICENSE", "COPYING", "NOTICE", "PATENTS"}, func(s string) bool { return strings.HasPrefix(name, s) })
}

// folder is where a module's files are.
func folder(m *debug.Module) (string, error) {
	if m.Path == "std" {
		root, err := exec.Command("go", "env", "GOROOT").Output() // runtime.GOROOT is empty with -trimpath
		return strings.TrimSpace(string(root)), err
	}
	text, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output()
	var answer struct{ Dir, Error string }
	if e := json.Unmarshal(text, &answer); e != nil || answer.Error != "" {
		return "", fmt.Errorf("%s@%s: %s: %w", m.Path, m.Version, answer.Error, cmp.Or(err, e))
	}
	return answer.Dir, nil
}
