package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/media/decode"
)

// evalBoxReport is the JSON object of eval --decode boxes and map.
type evalBoxReport struct {
	evalHead
	Objects int            `json:"objects"`        // boxes of the samples
	Found   int            `json:"found"`          // boxes that the model returned
	Right   int            `json:"right"`          // of them: the class of an object, and at least half of the union in common
	Mean    float64        `json:"mean_precision"` // of the classes
	Classes []boxPrecision `json:"classes"`
}

type boxPrecision struct {
	Class     int     `json:"class"`
	Name      string  `json:"name,omitempty"`
	Precision float64 `json:"average_precision"`
}

// boxes compares the boxes of all pictures of a folder with those of their objects.
func (e *evalCommand) boxes(ctx context.Context, s *session.Session, samples []evaluate.Pictured) (evaluated, error) {
	t := evaluate.Boxes{}
	h, err := e.each(s, "etrun.eval.boxes/1", len(samples), func(i int) (string, error) {
		return samples[i].Path, e.decoded(ctx, s, samples[i].Path, i, func(found any, of *output.Scene) error {
			list, ok := output.Boxes(found)
			if !ok || of.Place == nil {
				return session.Usage("--decode does not read the boxes of a picture: want boxes or map, and a program for one picture")
			}
			t.Add(inPixels(samples[i].Boxes, float32(of.Place.W), float32(of.Place.H)), list)
			return nil
		})
	})
	if h == nil {
		return nil, err
	}
	r := &evalBoxReport{evalHead: *h, Classes: []boxPrecision{}, Objects: t.Objects, Found: t.Found, Right: t.Right}
	classes, mean := t.Precision()
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		p := boxPrecision{Class: c, Precision: classes[c]}
		if names := e.classes.scores.Labels; c < len(names) {
			p.Name = names[c]
		}
		r.Classes = append(r.Classes, p)
	}
	r.Mean = mean
	return r, err
}

// inPixels returns boxes in pixels of a picture.
func inPixels(list []decode.Box, w, h float32) []decode.Box {
	list = slices.Clone(list)
	for i := range list {
		b := &list[i]
		b.Left, b.Right, b.Top, b.Bottom = b.Left*w, b.Right*w, b.Top*h, b.Bottom*h
	}
	return list
}

func (r *evalBoxReport) table() (titles, row string) {
	return "model\ta run\tpictures\tmean average precision\tobjects found\tboxes right",
		tableRow(r.Model, r.Latency, r.Samples, fmt.Sprintf("%.1f %%", 100*r.Mean), share(r.Right, r.Objects), share(r.Right, r.Found))
}

func (r *evalBoxReport) print(e *evalCommand) error {
	fmt.Fprintf(e.Out, "%s: mean average precision %.1f %%, %s of the objects found, %s of the boxes right; a run %s (median), all %s on %s\n",
		cli.Count(r.Samples, "picture", "pictures"), 100*r.Mean, share(r.Right, r.Objects), share(r.Right, r.Found), duration.FormatMS(r.Latency.P50),
		duration.FormatMS(r.TotalMS), cli.Count(r.Threads, "thread", "threads"))
	for _, c := range r.Classes {
		name := fmt.Sprintf("class %d", c.Class)
		if c.Name != "" {
			name = cli.Printable(c.Name)
		}
		fmt.Fprintf(e.Out, "  %s: %.1f %%\n", name, 100*c.Precision)
	}
	return nil
}
