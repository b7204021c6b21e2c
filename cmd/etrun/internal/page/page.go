// Package page makes one HTML page of what is known of a program: its instructions with
// delegates unfolded, its memory, its weights and where the time of its runs goes. The page
// needs nothing but itself.
package page

import (
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/timeline"
)

// Page is what is shown.
type Page struct {
	Name    string // of the file
	Version string // of etrun
	Facts   []Fact
	Notes   []string // warnings
	Methods []*Method
	Weights Weights
}

// Fact is a line of a table.
type Fact struct{ Name, Text string }

// Method is a method of the program.
type Method struct {
	Name         string
	Fault        string // why it does not load here; the instructions are those of the file then
	Facts        []Fact
	Instructions []Instruction
	Left         int    // instructions that are not shown
	Nodes        int    // of all delegates
	Plans        []Plan // the one in use first
	Legend       template.HTML
	Peak         int
	PeakBytes    int64
	AtPeak       []timeline.Live
	Profile      *Profile
}

// Plan is a memory plan.
type Plan struct {
	Name    string
	Drawing template.HTML
}

// Instruction is one row.
type Instruction struct {
	At     string // where the file has it: the instruction, or chain:instruction
	Step   int    // in the order of a run
	Kind   string // operator, delegate, move, jump or free
	Name   string
	Short  string // the name without what most have in common
	Result string // type and shape of the first result
	Bytes  int64  // that the results have
	Args   []Arg
	Source string // where the exporting program has it, where the file tells
	Fault  string // why it does not run here
	Time   *Time  // nil where it was not run
	Nodes  []Node // of a delegate
	Facts  []Fact // likewise

	Measured []profile.Row // operations of a delegate that are not its nodes one by one
}

// Arg is an argument of an instruction.
type Arg struct{ Name, Text string }

// Node is an operation inside a delegate.
type Node struct {
	Name, Detail string
	Time         *Time
}

// Time is what something takes of a run.
type Time struct {
	Median, Max time.Duration
	Share       float64 // of the run, 0 … 1
}

// Weights are constants by size.
type Weights struct {
	Rows  []Weight
	Total int64
	Left  int // that are not shown
}

// Weight is a constant.
type Weight struct {
	Name, Type, From string
	Bytes            int64
	Users            string
}

// Bounds of what a page shows.
const (
	maxInstructions = 20_000
	maxNodes        = 100_000
	maxWeights      = 5_000
	maxText         = 400 // letters of a text from the file
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes":   bytesize.Format,
	"micros":  took,
	"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	"part": func(n, of int64) float64 {
		if of <= 0 {
			return 0
		}
		return float64(n) / float64(of)
	},
	"count": func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	},
	"css":    func() template.CSS { return template.CSS(chart.Style + pageCSS) },
	"script": func() template.JS { return template.JS(chart.Script + pageJS) },
}).Parse(pageHTML))

// took is a time with three digits or more.
func took(d time.Duration) string {
	if d >= time.Millisecond {
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f µs", float64(d)/1e3)
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return layout.Execute(w, p) }

// cut bounds a text from the file.
func cut(text string) string {
	if r := []rune(text[:min(len(text), 4*maxText)]); len(r) > maxText || len(text) > 4*maxText {
		return string(r[:min(len(r), maxText)]) + "…"
	}
	return text
}
