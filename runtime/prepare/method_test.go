package prepare

import (
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/ir"
)

// working is an image with a workspace.
type working struct {
	delegate.Image
	workspace *lowering.Workspace
}

func (w working) Workspace() *lowering.Workspace { return w.workspace }

// TestPlannedWork checks which workspaces are planned: as many as the plan can share bytes between.
func TestPlannedWork(t *testing.T) {
	blocks := &lowering.Workspace{Moments: 1, Blocks: make([]lowering.Block, 1024)}
	for _, c := range []struct{ storages, images, want int }{
		{100, 1, 1}, {100, 3, 2}, {pack.MaxItems - 1024, 2, 1}, {pack.MaxItems - 1023, 1, 0}, {pack.MaxItems + 1, 1, 0},
	} {
		p := &Method{IR: &ir.Method{Storages: make([]ir.Storage, c.storages)}}
		for range c.images {
			p.Images, p.Needs = append(p.Images, working{workspace: blocks}), append(p.Needs, delegate.Needs{})
		}
		if err := p.planWork(); err != nil {
			t.Fatal(err)
		}
		planned := 0
		for _, w := range p.Work {
			if w != nil {
				planned++
			}
		}
		if planned != c.want {
			t.Errorf("%d storages, %d images of 1024 blocks: planned %d, want %d", c.storages, c.images, planned, c.want)
		}
	}
}

// TestFaultyWorkspaces checks that wrong declarations of a backend are errors.
func TestFaultyWorkspaces(t *testing.T) {
	span := func(first, last int) []lowering.Span { return []lowering.Span{{First: first, Last: last}} }
	block := func(bytes int64, first, last int) []lowering.Block {
		return []lowering.Block{{Bytes: bytes, Span: lowering.Span{First: first, Last: last}}}
	}
	for _, w := range []*lowering.Workspace{
		{},
		{Moments: -1},
		{Moments: 2, Args: span(0, 2)},
		{Moments: 2, Args: span(-1, 1)},
		{Moments: 2, Args: span(1, 0)},
		{Moments: 2, Blocks: block(-1, 0, 0)},
		{Moments: 2, Blocks: block(1, 0, 2)},
	} {
		p := &Method{IR: &ir.Method{}, Images: []delegate.Image{working{workspace: w}}, Needs: make([]delegate.Needs, 1), Backends: []string{"B"}}
		if err := p.planWork(); err == nil {
			t.Errorf("%+v: accepted", w)
		}
	}
}
