package window

// narrowRow is the row width from which planes are computed one by one. Copies pay from narrowChannels channels on, and
// from channelsOfPoint for each point of a row.
const narrowRow, narrowChannels, channelsOfPoint = 12, 16, 5

// ByPixels reports whether a depthwise convolution of planes with rows of these widths is computed on copies with adjacent
// channels, all channels of a pixel at once.
func ByPixels(in, out, channels int) bool {
	return out < narrowRow && in < 2*narrowRow && channels >= max(narrowChannels, channelsOfPoint*out)
}
