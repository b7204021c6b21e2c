package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declaration finds the functions of an assembly file, each with its declaration in front of it.
var declaration = regexp.MustCompile(`(?m)^// (func (\w+)\(.*)\n(?://.*\n)*TEXT`)

// addStubs declares the functions of all assembly, that of source and that written by hand in folder dir. Where a build
// has no such assembly they do nothing, so that one Go function may choose among the loops of all processors.
func addStubs(source map[string]string, dir string) error {
	byArch := map[string]map[string]string{"amd64": {}, "arm64": {}}
	add := func(file, text string) {
		for arch, declared := range byArch {
			if strings.HasSuffix(file, "_"+arch+".s") {
				for _, m := range declaration.FindAllStringSubmatch(text, -1) {
					declared[m[2]] = m[1]
				}
			}
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.s"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(text), generated) {
			add(path, string(text))
		}
	}
	for file, text := range source {
		add(file, text)
	}
	all := maps.Clone(byArch["arm64"])
	maps.Copy(all, byArch["amd64"])
	for arch, declared := range byArch {
		source["stubs_"+arch+".go"] = stubs("!purego", all, declared)
	}
	source["stubs_none.go"] = stubs("purego || !(amd64 || arm64)", all, nil)
	return nil
}

// stubs declares all functions, those that are not declared elsewhere with a body.
func stubs(build string, all, declared map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s//go:build %s\n\npackage simd\n\n// Nothing calls the functions that have a body: this build has no assembly for them.\n", generated, build)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if signature, ok := declared[name]; ok {
			fmt.Fprintf(&b, "\n//go:noescape\n%s\n", signature)
		} else if strings.HasSuffix(all[name], ")") && strings.Count(all[name], "(") == 1 {
			fmt.Fprintf(&b, "\n%s {}\n", all[name])
		} else {
			fmt.Fprintf(&b, "\n%s { return }\n", all[name])
		}
	}
	return b.String()
}
