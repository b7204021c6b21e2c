package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// testCase is a program with a sequence of calls and their expected outputs.
type testCase struct {
	name      string
	files     fs.FS // contains the files below
	program   string
	data      []string // .ptd files, by path
	calls     []call
	refuse    bool // an error is expected
	mayRefuse bool // an error is accepted
}

type call struct {
	Method  string
	Inputs  []value
	Outputs []value
}

// value is an input or output: a file of elements, or a scalar.
type value struct {
	Kind       string
	File, Data string // alternative names
	DType      string
	Shape      []int
	DimOrder   []uint8 `json:"dim_order"`
	Value      any
	ATol, RTol *float64
	Compare    string
	Reference  string `json:"reference_data"` // an alternative expected output
}

// load reads the cases of a corpus.
func load(folder string) ([]*testCase, error) {
	if folder == "" {
		return nil, errors.New("-corpus is required")
	}
	if _, err := os.Stat(filepath.Join(folder, "manifest.json")); err == nil {
		return loadManifest(folder)
	}
	zips, err := filepath.Glob(filepath.Join(folder, "*.zip"))
	if err != nil || len(zips) == 0 {
		return nil, fmt.Errorf("%s: no manifest.json and no zip files of cases", folder)
	}
	var cases []*testCase
	for _, z := range zips {
		more, err := loadZip(z)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", z, err)
		}
		cases = append(cases, more...)
	}
	return cases, nil
}

func readJSON(files fs.FS, name string, into any) error {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func loadManifest(folder string) (cases []*testCase, err error) {
	files := os.DirFS(folder)
	var manifest struct {
		Cases []struct {
			ID, File, Expect string
			DataFiles        []string `json:"data_files"`
			ATol, RTol       float64
			call
			Steps []call
		}
	}
	if err := readJSON(files, "manifest.json", &manifest); err != nil {
		return nil, err
	}
	for _, m := range manifest.Cases {
		if strings.HasPrefix(m.Expect, "program is wrong") {
			continue // any output passes
		}
		c := &testCase{name: m.ID, files: files, program: m.File, calls: m.Steps, mayRefuse: strings.Contains(m.Expect, "clean error")}
		for _, d := range m.DataFiles {
			c.data = append(c.data, filepath.Join(folder, d))
		}
		if len(m.Steps) == 0 {
			c.calls = []call{m.call}
		}
		for i := range c.calls {
			k := &c.calls[i]
			if k.Method == "" {
				k.Method = m.Method
			}
			for o := range k.Outputs {
				if v := &k.Outputs[o]; v.ATol == nil {
					v.ATol, v.RTol = &m.ATol, &m.RTol
				}
			}
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func loadZip(name string) (cases []*testCase, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	files, err := zip.NewReader(strings.NewReader(string(b)), int64(len(b)))
	if err != nil {
		return nil, err
	}
	stem := strings.TrimSuffix(filepath.Base(name), ".zip")
	for _, f := range files.File {
		if path.Ext(f.Name) != ".json" {
			continue
		}
		var m struct {
			Program, Expect, Reference string
			call
			MoreCalls []call `json:"more_calls"`
		}
		if err := readJSON(files, f.Name, &m); err != nil {
			return nil, err
		}
		c := &testCase{name: stem + "/" + strings.TrimSuffix(f.Name, ".json"), files: files, program: m.Program,
			calls: append([]call{m.call}, m.MoreCalls...), refuse: m.Expect == "error", mayRefuse: strings.HasPrefix(m.Reference, "refuses")}
		for i := range c.calls {
			c.calls[i].Method = m.Method
		}
		cases = append(cases, c)
	}
	return cases, nil
}
