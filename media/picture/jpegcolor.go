package picture

// decodeJPEG decodes a file to the bytes that libjpeg has with its default settings, and so what Pillow, torchvision and OpenCV
// train models with.
func decodeJPEG(file []byte, check func() error) (rows, error) {
	d := newJPEG(file)
	if err := d.samples(check); err != nil {
		return rows{}, err
	}
	return rows{d.frame.w, d.frame.h, d.colors()}, nil
}

// colors returns the conversion of rows. It decides about color spaces like libjpeg.
func (d *jpegFile) colors() func(out []byte, y int) {
	p, ids := []*plane{}, ""
	for _, c := range d.frame.components {
		p, ids = append(p, &c.plane), ids+string(rune(c.id))
	}
	switch {
	case len(p) == 1:
		return func(out []byte, y int) {
			row := p[0].pixels(y)
			interleave(out, row, row, row)
		}
	case len(p) == 4 && d.adobe <= 0:
		return func(out []byte, y int) {
			interleave(out, p[0].pixels(y), p[1].pixels(y), p[2].pixels(y))
			for i := range out {
				out[i] ^= 0xff
			}
			printBlack(out, p[3].pixels(y))
		}
	case len(p) == 4:
		return func(out []byte, y int) {
			convertYCbCr(out, p[0].pixels(y), p[1].pixels(y), p[2].pixels(y))
			printBlack(out, p[3].pixels(y))
		}
	case !d.jfif && (d.adobe == 0 || d.adobe < 0 && ids == "RGB"):
		return func(out []byte, y int) { interleave(out, p[0].pixels(y), p[1].pixels(y), p[2].pixels(y)) }
	}
	return func(out []byte, y int) { convertYCbCr(out, p[0].pixels(y), p[1].pixels(y), p[2].pixels(y)) }
}

func interleave(out, a, b, c []byte) {
	n := len(out) / 3
	a, b, c = a[:n], b[:n], c[:n]
	for i := range n {
		to := out[3*i : 3*i+3 : 3*i+3]
		to[0], to[1], to[2] = a[i], b[i], c[i]
	}
}

// convertYCbCr converts colors with libjpeg's 16-bit fixed-point factors.
func convertYCbCr(out, luma, blue, red []byte) {
	const half = 1 << 15
	n := len(out) / 3
	luma, blue, red = luma[:n], blue[:n], red[:n]
	for i := range n {
		y, cb, cr := int32(luma[i]), int32(blue[i])-128, int32(red[i])-128
		to := out[3*i : 3*i+3 : 3*i+3]
		to[0] = clamp(y + (91881*cr+half)>>16)
		to[1] = clamp(y + (half-22554*cb-46802*cr)>>16)
		to[2] = clamp(y + (116130*cb+half)>>16)
	}
}

// printBlack converts inks to colors like Pillow. Black is inverted, as Adobe's programs write it.
func printBlack(inks, black []byte) {
	for i, v := range inks {
		k := uint32(black[i/3])
		t := uint32(v)*k + 128
		inks[i] = byte(k - (t>>8+t)>>8)
	}
}
