package output

import (
	"image"
	"image/color"
	"image/draw"
)

// colors of the boxes of classes.
var colors = []color.NRGBA{{230, 25, 75, 255}, {60, 180, 75, 255}, {0, 130, 200, 255}, {245, 130, 48, 255}, {145, 30, 180, 255}, {0, 128, 128, 255}}

// Draw draws what was decoded on the call's picture: the sides of boxes, in a colour for each class. Other results have no place in it.
func Draw(m *image.NRGBA, found any) {
	list, _ := found.([]box)
	thick := max(min(m.Bounds().Dx(), m.Bounds().Dy())/200, 1)
	for _, b := range list {
		outer := image.Rect(int(b.Left), int(b.Top), int(b.Right+0.5), int(b.Bottom+0.5)).Intersect(m.Bounds())
		inner := outer.Inset(thick)
		of := image.NewUniform(colors[b.Class%len(colors)])
		for _, side := range []image.Rectangle{
			{outer.Min, image.Pt(outer.Max.X, inner.Min.Y)}, {image.Pt(outer.Min.X, inner.Max.Y), outer.Max},
			{outer.Min, image.Pt(inner.Min.X, outer.Max.Y)}, {image.Pt(inner.Max.X, outer.Min.Y), outer.Max},
		} {
			draw.Draw(m, side.Intersect(outer), of, image.Point{}, draw.Src)
		}
	}
}
