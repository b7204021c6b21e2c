package input

import (
	"context"
	"errors"
	"image"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/picture"
)

// WarnCut is the format of the warning that a part of a picture was cut off: its input, path and what. It is not a note.
const WarnCut = "warning: input %d: %s: %s are cut off; resize=HxW keeps all of it"

// CutOnce returns a function that says only the first of those warnings, for many files.
func CutOnce(say func(format string, args ...any)) func(format string, args ...any) {
	warned := false
	return func(format string, args ...any) {
		if format == WarnCut && !warned {
			warned = true
			say(format, args...)
		}
	}
}

// Sized is a picture for an input of dynamic sizes. The file does not declare which sizes the program accepts: it shows in the run.
type Sized struct {
	Input   int
	Attempt int // the present one
	next    int
	made    picture.Input
	path    string
	file    []byte
	recipe  picture.Recipe
	want    picture.Want
	say     func(format string, args ...any)
}

// Next returns the picture in another size, the nearest to its own that was not tried; ok is false if there is none.
func (s *Sized) Next(ctx context.Context) (v tensor.Value, ok bool) {
	if s.next < 0 {
		return v, false
	}
	s.want.Attempt = s.next
	if err := s.convert(ctx); err != nil {
		return v, false
	}
	return tensor.TensorValue(s.made.Tensor), true
}

// Place says where points of the input are in the picture.
func (s *Sized) Place() picture.Place { return s.made.Place }

// Image returns the picture itself.
func (s *Sized) Image(ctx context.Context) (*image.NRGBA, error) {
	return picture.Image(ctx, s.file, s.recipe.Stored, s.want.Limit)
}

// Say notes how the picture is converted.
func (s *Sized) Say() {
	s.say("input %d: %s: %s", s.Input, s.path, s.made.Applied)
	if s.made.Cut != "" {
		s.say(WarnCut, s.Input, s.path, s.made.Cut)
	}
}

func (s *Sized) convert(ctx context.Context) (err error) {
	s.made, err = picture.Tensor(ctx, s.file, s.recipe, s.want)
	s.Attempt, s.next = s.want.Attempt, s.made.Next
	return err
}

// picture reads an image and converts it to an input; the file and the pixels are in memory
// at the same time.
func (r *Resolver) picture(ctx context.Context, index int, src source, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	s := src.spec
	file, err := readAll(src.file, s.Path, max(min(maxPicture, r.Limit), 1))
	if err != nil {
		return nil, err
	}
	made := picture.Want{DType: slot.DType, Sizes: slot.Sizes, Dynamic: slot.Dynamism != tensor.Static, Limit: r.Limit - int64(len(file)),
		Attempt: r.Attempt}
	p := &Sized{Input: index, path: s.Path, file: file, recipe: s.Recipe, want: made, say: r.Say}
	err = p.convert(ctx)
	if errors.Is(err, picture.ErrShape) {
		return nil, mismatch("%w, want %s", err, want(slot))
	}
	if err != nil {
		return nil, err
	}
	p.Say()
	r.Shown = append(r.Shown, p)
	if p.next >= 0 {
		r.Pictures = append(r.Pictures, p)
	}
	return p.made.Tensor, r.reserve(int64(p.made.NBytes()) + int64(len(file)))
}
