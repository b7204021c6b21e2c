// Package evaluate lists labelled samples, and counts how many of them a classifier gets right.
package evaluate

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/openfile"
)

// Sample is an input file with its class.
type Sample struct {
	Path  string
	Label string // as in the folder or the table
	Class int    // index among the scores
}

// ErrSamples is the class of errors in samples, labels and classes.
var ErrSamples = errors.New("samples")

func fault(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrSamples, fmt.Errorf(format, args...))
}

// Limits of what is read.
const (
	maxSamples = 1 << 22
	maxTable   = 256 << 20
)

// extensions are those of input files in folders.
var extensions = []string{".png", ".jpg", ".jpeg", ".npy", ".wav", ".bin"}

// Files calls add with the files of a folder and its folders that have one of the extensions, in the order of their paths: regular ones and
// links, as others may never end.
func Files(ctx context.Context, dir string, extensions []string, most int, add func(path string) error) error {
	n := 0
	return filepath.WalkDir(filepath.Clean(dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.Type()&^fs.ModeSymlink != 0 || !slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			return nil
		case n == most:
			return fault("%s: more than %d files", dir, most)
		}
		n++
		return add(path)
	})
}

// Folder lists the samples in the folders of a folder, one folder per class, in the order of their paths.
func Folder(ctx context.Context, dir string) (list []Sample, err error) {
	err = Files(ctx, dir, extensions, maxSamples, func(path string) error {
		inside, _ := filepath.Rel(dir, path)
		label, _, nested := strings.Cut(filepath.ToSlash(inside), "/")
		if !nested {
			return fault("%s: not in the folder of a class, want FOLDER/CLASS/FILE, or --labels FILE.csv", path)
		}
		list = append(list, Sample{Path: path, Label: label})
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fault("%s: no files in folders of classes, want FOLDER/CLASS/FILE with the extensions %s", dir, strings.Join(extensions, " "))
	}
	return list, err
}

// Table lists the samples of a CSV file with the columns file and label. Files are relative to a folder, and may not leave it.
func Table(ctx context.Context, path, folder string) ([]Sample, error) {
	text, err := openfile.ReadFile(ctx, path, openfile.Rules{Kinds: openfile.Pipes, Limit: maxTable})
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	var list []Sample
	for line := 0; ; line++ {
		row, err := r.Read()
		switch {
		case err == io.EOF && len(list) == 0:
			return nil, fault("%s: no rows", path)
		case err == io.EOF:
			return list, nil
		case err != nil:
			return nil, fault("%s: %w", path, err)
		case len(row) < 2:
			return nil, fault("%s: row %d has %d columns, want file,label", path, line+1, len(row))
		case len(list) == maxSamples:
			return nil, fault("%s: more than %d rows", path, maxSamples)
		}
		name := filepath.FromSlash(strings.TrimSpace(row[0]))
		if line == 0 && isHeading(folder, name) {
			continue
		}
		if !filepath.IsLocal(name) {
			return nil, fault("%s: row %d: file %.200q is outside of %s", path, line+1, name, folder)
		}
		list = append(list, Sample{Path: filepath.Join(folder, name), Label: strings.TrimSpace(row[1])})
	}
}

// isHeading reports whether the first row of a table has the names of columns.
func isHeading(folder, name string) bool {
	if slices.Contains([]string{"file", "filename", "path", "image"}, strings.ToLower(name)) {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err != nil
	}
	return false
}

// Classes sets the class of each sample, and returns the names of all classes in the order of the scores: the given ones; without
// them numbers, if all labels are numbers, else the labels in alphabetical order.
func Classes(list []Sample, names []string) ([]string, error) {
	if names == nil {
		names = namesOf(list)
	}
	index := make(map[string]int, len(names))
	for i, name := range names {
		if _, twice := index[name]; !twice {
			index[name] = i
		}
	}
	for i := range list {
		class, ok := index[list[i].Label]
		if n, err := strconv.Atoi(list[i].Label); !ok && err == nil && n >= 0 && n < len(names) {
			class, ok = n, true
		}
		if !ok {
			return nil, fault("%s: label %.100q is not one of the %d classes", list[i].Path, list[i].Label, len(names))
		}
		list[i].Class = class
	}
	return names, nil
}

// maxNumber is the maximum class of labels that are numbers.
const maxNumber = 1 << 20

func namesOf(list []Sample) (names []string) {
	most := -1
	for i := range list {
		n, err := strconv.Atoi(list[i].Label)
		if err != nil || n < 0 || n > maxNumber {
			most = -1
			break
		}
		most = max(most, n)
	}
	if most >= 0 {
		for i := range most + 1 {
			names = append(names, strconv.Itoa(i))
		}
		return names
	}
	for i := range list {
		names = append(names, list[i].Label)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
