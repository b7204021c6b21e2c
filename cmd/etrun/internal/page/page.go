// Package page makes an HTML page about a program: its graph, its memory, its weights and a
// profile of its runs. The page is self-contained.
package page

import (
	_ "embed" // style and script
	"fmt"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/timeline"
)

// Page is the content of the page.
type Page struct {
	Name    string // name of the file
	Version string // version of etrun
	Facts   []Fact
	Notes   []string // warnings
	Methods []*Method
	Weights Weights
	Graph   Markup // see graph.Element; empty for none
}

// Fact is a row of a table.
type Fact struct{ Name, Text string }

// Method is a method of the program.
type Method struct {
	Name         string
	Fault        string // why it does not load here; the graph is then that of the file
	Facts        []Fact
	Instructions int
	Nodes        int    // nodes of all delegates
	Plans        []Plan // the plan in use first
	Legend       Markup
	Peak         timeline.Moment
	PeakBytes    int64
	AtPeak       []timeline.Live
	Profile      *Profile
}

// Plan is a memory plan.
type Plan struct {
	Name    string
	Drawing Markup
}

// Weights are constants by size.
type Weights struct {
	Rows  []Weight
	Total int64
	Left  int // number of constants not shown
}

// Weight is a constant.
type Weight struct {
	Name, Type, From string
	Bytes            int64
	Users            string
}

// maxWeights limits the constants of a page.
const maxWeights = 5_000

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func part(n, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Profile is the profile of a method's runs.
type Profile struct {
	Runs        int
	Median, Max time.Duration
	Rows        []profile.Row // by operator, nodes below their delegates
	Flame       Markup
}

// Markup is a part of the page that is written unchanged: drawings, style and script.
type Markup string
