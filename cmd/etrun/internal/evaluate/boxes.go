package evaluate

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/media/decode"
)

// Pictured is a picture with the boxes of its objects, which are in shares of its sizes.
type Pictured struct {
	Path  string
	Boxes []decode.Box
}

// maxBoxes bounds the boxes of a file, and its size.
const maxBoxes, maxBoxFile = 1 << 16, 8 << 20

// Pictures lists the pictures of a folder with their boxes, as YOLO has them: FILE.txt beside FILE.png has the lines "CLASS X Y WIDTH HEIGHT",
// the number of a class, the center and the sizes of a box. A picture without such a file has none.
func Pictures(ctx context.Context, dir string) (list []Pictured, err error) {
	labelled := false
	err = Files(ctx, dir, extensions, maxSamples, func(path string) error {
		name := strings.TrimSuffix(path, filepath.Ext(path)) + ".txt"
		text, err := openfile.ReadFile(ctx, name, openfile.Rules{Limit: maxBoxFile})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		labelled = labelled || err == nil
		boxes, err := parseBoxes(name, string(text))
		list = append(list, Pictured{path, boxes})
		return err
	})
	if err == nil && !labelled {
		err = fault("%s: no boxes, want FILE.txt beside each FILE.png with lines CLASS X Y WIDTH HEIGHT, in shares of the picture", dir)
	}
	return list, err
}

func parseBoxes(name, text string) (list []decode.Box, err error) {
	line := 0
	for row := range strings.Lines(text) {
		line++
		words := strings.Fields(row)
		if len(words) == 0 {
			continue
		}
		var n [5]float32
		good := len(words) == len(n) && len(list) < maxBoxes
		for i := 0; i < len(n) && good; i++ {
			v, err := strconv.ParseFloat(words[i], 32)
			n[i], good = float32(v), err == nil && v >= 0 && (v <= 1 || i == 0 && v < maxNumber && v == math.Trunc(v))
		}
		if !good {
			return nil, fault("%s: line %d: %.100q, want CLASS X Y WIDTH HEIGHT: a number, and four from 0 to 1; at most %d lines", name, line, row, maxBoxes)
		}
		list = append(list, decode.Box{Left: n[1] - n[3]/2, Top: n[2] - n[4]/2, Right: n[1] + n[3]/2, Bottom: n[2] + n[4]/2, Class: int(n[0])})
	}
	return list, nil
}

// Boxes counts the boxes that were found in pictures: a box is right if it is of the class of an object, and more than half of what the two
// cover is common. Each object is found once, by the box of the highest score.
type Boxes struct {
	Objects, Found, Right int
	wanted                map[int]int // objects by class
	found                 []foundBox
}

type foundBox struct {
	class int
	score float32
	right bool
}

// leastOverlap is the least intersection of two boxes over their union.
const leastOverlap = 0.5

// Add counts the boxes of a picture.
func (t *Boxes) Add(wanted, found []decode.Box) {
	if t.wanted == nil {
		t.wanted = make(map[int]int)
	}
	for i := range wanted {
		t.wanted[wanted[i].Class]++
	}
	t.Objects, t.Found = t.Objects+len(wanted), t.Found+len(found)
	found = slices.Clone(found)
	sort.SliceStable(found, func(i, k int) bool { return cmp.Less(found[k].Score, found[i].Score) })
	taken := make([]bool, len(wanted))
	for i := range found {
		b, best, most := &found[i], -1, float32(leastOverlap)
		for k := range wanted {
			if o := decode.Overlap(b, &wanted[k]); !taken[k] && wanted[k].Class == b.Class && o >= most {
				best, most = k, o
			}
		}
		if best >= 0 {
			taken[best] = true
			t.Right++
		}
		t.found = append(t.found, foundBox{b.Class, b.Score, best >= 0})
	}
}

// Precision returns the average precision of each class that pictures have, the area below the precision over the recall, and their mean.
func (t *Boxes) Precision() (classes map[int]float64, mean float64) {
	sort.SliceStable(t.found, func(i, k int) bool { return cmp.Less(t.found[k].score, t.found[i].score) })
	classes = make(map[int]float64)
	for class, objects := range t.wanted {
		var precision []float64 // at each right box
		right, all := 0, 0
		for _, f := range t.found {
			if f.class != class {
				continue
			}
			if all++; f.right {
				right++
				precision = append(precision, float64(right)/float64(all))
			}
		}
		best, sum := 0.0, 0.0
		for _, p := range slices.Backward(precision) {
			best = max(best, p)
			sum += best
		}
		classes[class] = sum / float64(objects)
		mean += classes[class] / float64(len(t.wanted))
	}
	return classes, mean
}
