package npu

// move is a pooling operation that does not change values: compilers use it to convert layouts. It
// copies elements without converting them.
type move struct {
	header
	src fmap
	out output
}

// asMove returns the equivalent move of an operation, nil if it computes something.
func (o *kernelOp) asMove() *move {
	p, ok := o.unit.(pool)
	v, out := &o.window, &o.out
	sums := p.mode == poolAverage && !p.divide || p.mode == poolSum
	switch {
	case !ok || !sums || v.taps() != 1 || v.strideY*v.strideX != 1 || v.upscale != upscaleNone,
		v.top+v.left+v.bottom+v.right != 0, o.acc != accReset || out.disabled || o.staged,
		o.ifm.storage != inMemory || out.ofm.storage != inMemory || out.perChannel != nil || out.table.kind != noTable,
		o.ifm.size != out.ofm.size || o.ifm.signed != out.ofm.signed || o.ifm.zero != out.ofm.zero,
		out.first > out.low || out.last < out.high || out.scaled && !out.scale.isIdentity(o.inputLimit()):
		return nil
	}
	return &move{header: o.header, src: o.ifm, out: *out}
}

// isIdentity reports whether a scaling changes no number up to a magnitude.
func (s *scaling) isIdentity(limit int64) bool {
	return s.isUnit() || s.mult == 1<<31+1 && s.shift == 31 && limit < 1<<30 // the 1 contributes less than half
}

func (m *move) run(r *Run, _ int) error {
	from, to := r.mem[m.src.region], r.mem[m.out.ofm.region]
	src, out := &m.src, &m.out
	run := out.d
	if src.bricks || out.ofm.bricks {
		run = brick
	}
	channelsStay := out.axes[2] == 2 && out.reverse == 0
	for y := range out.h {
		if r.ctx.Err() != nil {
			return nil // checked by Execute
		}
		left, right := src.row(y)
		for x := range out.w {
			at := left
			isRight, offset := src.column(x)
			if isRight {
				at = right
			}
			if at += offset; channelsStay {
				m.pixel(to, from, at, y, x, run)
			} else {
				m.scatter(to, from, at, y, x)
			}
		}
	}
	return nil
}

// pixel copies a pixel whose channels are contiguous, run channels at a time.
func (m *move) pixel(to, from []byte, at int64, y, x, run int) {
	src, ofm, place := &m.src, &m.out.ofm, [3]int{y, x, 0}
	base := ofm.pixel(place[m.out.axes[0]], place[m.out.axes[1]])
	if src.d == 1 && src.size == 1 {
		to[base] = from[at]
		return
	}
	for c := 0; c < src.d; c += run {
		n := int64(min(run, src.d-c) * src.size)
		i, j := base+ofm.channel(c), at+src.channel(c)
		copy(to[i:i+n], from[j:j+n])
	}
}

// scatter copies a pixel one channel at a time.
func (m *move) scatter(to, from []byte, at int64, y, x int) {
	src, out := &m.src, &m.out
	size := int64(src.size)
	for c := range src.d {
		i, j := out.address(y, x, c), at+src.channel(c)
		if size == 1 {
			to[i] = from[j]
			continue
		}
		copy(to[i:i+size], from[j:j+size])
	}
}
