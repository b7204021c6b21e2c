package xnnpack

// What nodes take in the Go engine beside their rates, in nanoseconds.
const (
	goTile      = 2.5   // for a row of a tile of a product, in each pass over the output
	goGathered  = 2     // for an element of a window that is gathered in short pieces
	goLatency   = 1.3   // for a term of a product of one row, by goRowCols columns
	goRowCols   = 128   //
	goConverted = 0.3   // for an element of 16 bits
	goPadded    = 0.1   // for an element of an image that is copied with its padding
	goFew       = 8     // output channels up to which tiles are half as wide, and rows take
	goNarrow    = 4     //
	goCopied    = 3     // for a run of an operand that is joined to others
	goGroups    = 0.037 // for a term of a product in groups
	goSoftmax   = 9     // for a row of a softmax
	goTranspose = 80    // for a transpose
	goProduct   = 40    // for a product
	goRepeat    = 60    // for operands of which one is repeated
	goRepeatRow = 6     // for a run along which either goes on or stays
	goPanel     = 32    // output channels of a tile
	goChannels  = 32    // channels that a depthwise convolution computes together
)

// isDepthwise reports a depthwise convolution with an output channel for each channel: others
// are computed as convolutions of groups.
func (n *node) isDepthwise() bool {
	return n.Type.tag == tagDepthwiseConv2d && n.window().groupOut == 1
}

// goTime is what a node takes in the Go engine beside its rates.
func (e *estimator) goTime(n *node) (time float64) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	if e.Values[n.In[0]].Datatype.info().bits == 16 {
		time += goConverted * float64(in.numel()+out.numel())
	}
	switch w := n.window(); {
	case n.isDepthwise():
		if w.top+w.left > 0 && out.dim[2] <= narrowLine {
			time += goPadded * float64(in.numel())
		}
	case n.Type.convolution:
		rows := float64(out.leading(3) * w.groups)
		time += goTile * rows * float64(w.kernelH*ceilDiv(w.groupOut, goPanel))
		if w.groups > 1 {
			time += goGroups * float64(n.Type.cost(e.graph, n, e.shapes))
		}
		if w.groupOut <= goFew {
			time += goNarrow * rows * float64(w.kernelH)
		}
		if taps := w.kernelW * w.groupIn; w.kernelH*w.kernelW > 1 && taps < shortRow {
			time += goGathered * rows * float64(w.kernelH*taps)
		}
	case n.isConcatenate():
		time += goCopied * float64(e.pieces(n, out))
	case n.Type.name == "Softmax":
		time += goSoftmax * float64(out.numel()/max(out.last(), 1))
	case n.Type.tag == tagStaticTranspose:
		time += goTranspose
	case len(n.In) == 2 && !n.Type.packs && in != e.shapes[n.In[1]]:
		time += goRepeat + goPadded*float64(out.numel()) + goRepeatRow*float64(e.rows(n, out))
	case n.Type.packs:
		rows, cols := out.numel()/max(out.last(), 1), out.last()
		time += goProduct + goTile*float64(rows*ceilDiv(cols, goPanel))
		if rows < 4 {
			k := in.last()
			time += float64(rows*k) * max(0, goLatency*float64(ceilDiv(cols, goRowCols))-0.02*float64(cols))
		}
	}
	return time
}
