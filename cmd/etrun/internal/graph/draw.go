package graph

import (
	"unicode/utf8"

	"github.com/etrun-go/etrun/cmd/etrun/internal/layered"
)

// Sizes of nodes, in the units of the page's script.
const (
	minWidth  = 90
	maxWidth  = 280
	letter    = 6.9
	padding   = 24
	sheetEdge = 20 // around the nodes of an unfolded delegate
)

// width returns the width of a node for its texts.
func (b *builder) width(n *Node) float64 {
	letters := utf8.RuneCountInString(n.Name) * 9 / 8 // bold
	letters = max(letters, utf8.RuneCountInString(n.Result))
	for i, c := range n.Constants {
		if i == maxBadges {
			break
		}
		letters = max(letters, utf8.RuneCountInString(c.Name)+1+utf8.RuneCountInString(b.p.Constants[c.At].Type))
	}
	return min(max(letter*float64(letters)+padding, minWidth), maxWidth)
}

// maxBadges is the number of constants that the page lists in a node.
const maxBadges = 3

// draw draws the sheets: first the insides of delegates, whose sizes the method's sheet needs.
func (b *builder) draw() {
	sheets := make([]Sheet, 1, len(b.inner)+1)
	for i := range b.inner {
		sheets = append(sheets, b.sheet(&b.inner[i], nil))
	}
	sheets[0] = b.sheet(&b.top, sheets)
	b.out.Sheets = sheets
	b.setRanks(&sheets[0])
}

// sheet draws one sheet.
func (b *builder) sheet(from *sheet, inside []Sheet) Sheet {
	g := &layered.Graph{Bands: from.bands}
	index := make(map[int]int, len(from.nodes))
	for k, n := range from.nodes {
		index[n] = k
		width := b.width(&b.out.Nodes[n])
		if in := b.out.Nodes[n].Sheet; in > 0 && inside != nil {
			width = max(width, inside[in].Width+2*sheetEdge)
		}
		g.Widths = append(g.Widths, width)
	}
	s := Sheet{Nodes: from.nodes, Edges: make([]Edge, len(from.links))}
	for i, l := range from.links {
		e := &s.Edges[i]
		*e = Edge{From: index[l.from], To: index[l.to], Kind: l.kind}
		g.Edges = append(g.Edges, layered.Edge{From: e.From, To: e.To})
	}
	drawn := layered.Make(g)
	s.Ranks, s.Rank, s.Width = drawn.Ranks, drawn.Rank, round(drawn.Width)
	for _, x := range drawn.X {
		s.X = append(s.X, round(x))
	}
	for i := range s.Edges {
		s.Edges[i].Route = int(drawn.Routes[i])
		for _, x := range drawn.Bends[i] {
			s.Edges[i].Bends = append(s.Edges[i].Bends, int32(x))
		}
	}
	if s.Nodes == nil {
		s.Nodes, s.X = []int{}, []float64{}
	}
	return s
}

// setRanks sets the ranks of blocks.
func (b *builder) setRanks(s *Sheet) {
	for k := range b.out.Blocks {
		b.out.Blocks[k].Ranks = [2]int{s.Ranks, -1}
	}
	for k, band := range b.top.bands {
		if band < len(b.out.Blocks) {
			r := &b.out.Blocks[band].Ranks
			r[0], r[1] = min(r[0], s.Rank[k]), max(r[1], s.Rank[k])
		}
	}
}
