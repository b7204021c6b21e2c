// Package input converts the command line's --input arguments to a method's inputs.
package input

import (
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/picture"
)

// Source is the kind of source of a value.
type Source uint8

// Kinds of sources.
const (
	Raw     Source = iota // file of elements in memory order
	Array                 // .npy file
	Archive               // .npz file, one array per input
	Picture               // .png or .jpg file
	Scalar                // value in the argument
	Fill                  // zeros, ones or random elements
	Sound                 // .wav file
	Tensors               // .safetensors file, one tensor per input
	JSON                  // .json file, or JSON in the argument: lists of numbers, or an object of them by input
)

// Spec is one parsed argument.
type Spec struct {
	Text   string
	Input  string         // index or name of the input; empty: the next in order
	Source Source         // by extension for files; their first bytes take precedence
	Path   string         // files; empty for JSON in the argument
	Inline string         // JSON in the argument
	Value  tensor.Value   // Scalar
	Fill   string         // "zeros", "ones" or "rand"
	Shape  *Shape         // explicit element type and sizes, nil for those of the model
	Recipe picture.Recipe // Picture
	Sound  SoundRecipe
}

// Shape is an explicit element type with sizes.
type Shape struct {
	DType   tensor.DType
	AnyType bool // use the model's type instead of DType
	Sizes   []int
}

// ErrSpec is the class of errors in an argument's text.
var ErrSpec = errors.New("input argument")

var (
	namePrefix = lazy.Pattern(`^([A-Za-z_][A-Za-z0-9_.]*|[0-9]+)=`)
	statedTail = lazy.Pattern(`:([A-Za-z][A-Za-z0-9_]*):(scalar|[0-9]+(?:x[0-9]+)*)$`)
	statedFill = lazy.Pattern(`^(?:zeros|ones|rand):(scalar|[0-9]+(?:x[0-9]+)*)$`)
	pictureExt = lazy.Pattern(`(?i)\.(png|jpe?g|gif|webp)(:|$)`)
	soundExt   = lazy.Pattern(`(?i)\.wav(:|$)`)
	// Options determine the kind of a file if its extension does not.
	pictureTail = lazy.Pattern(`:((?:` + strings.Join(recipeKeys, "|") + `)=[^:]*)$`)
	soundTail   = lazy.Pattern(`:((?:rate|resample|channel|length|frame|hop|pad)=[^:]*)$`)
)

// Parse parses [NAME=]SOURCE, where SOURCE is a file (.npy, .npz, .safetensors, .json, .png,
// .jpg, .wav, else raw elements), int:5, float:0.5, bool:true, str:text, none, json:[1,2],
// zeros, ones or rand. Raw files, arrays and fills accept :dtype:shape, fills also :shape,
// images and recordings :key=value,…. A path may contain colons and, if written as ./a=b,
// equals signs.
func Parse(text string) (Spec, error) {
	s := Spec{Text: text}
	rest := text
	if m := namePrefix().FindString(text); m != "" {
		s.Input, rest = m[:len(m)-1], text[len(m):]
	}
	if err := s.parseSource(rest); err != nil {
		return Spec{}, fmt.Errorf("%w %q: %w", ErrSpec, text, err)
	}
	return s, nil
}

// ParseFile parses a path, which is not taken for [NAME=]SOURCE, with options for it, empty for none.
func ParseFile(path, options string) (Spec, error) {
	if !filepath.IsAbs(path) {
		path = "./" + path
	}
	if options != "" {
		path += ":" + options
	}
	return Parse(path)
}

func (s *Spec) parseSource(text string) error {
	head, tail, more := strings.Cut(text, ":")
	if read, ok := scalars[head]; ok && more {
		s.Source = Scalar
		return read(&s.Value, tail)
	}
	switch {
	case text == "none":
		s.Source = Scalar
		return nil
	case head == "json" && more:
		s.Source, s.Inline = JSON, tail
		return nil
	case head == "zeros" || head == "ones" || head == "rand":
		s.Source, s.Fill = Fill, head
		return s.parseFill(text)
	case pictureExt().MatchString(text):
		return s.parsePicture(text)
	case soundExt().MatchString(text):
		return s.parseSound(text)
	}
	return s.parseFile(text)
}

// scalars parse the text after the colon.
var scalars = map[string]func(*tensor.Value, string) error{
	"int": func(v *tensor.Value, text string) error {
		i, err := strconv.ParseInt(text, 10, 64)
		*v = tensor.IntValue(i)
		return plain(err)
	},
	"float": func(v *tensor.Value, text string) error {
		d, err := strconv.ParseFloat(text, 64)
		*v = tensor.DoubleValue(d)
		return plain(err)
	},
	"bool": func(v *tensor.Value, text string) error {
		b, err := strconv.ParseBool(text)
		*v = tensor.BoolValue(b)
		return plain(err)
	},
	"str": func(v *tensor.Value, text string) error {
		*v = tensor.StringValue(text)
		return nil
	},
}

// plain removes the function name from strconv's errors.
func plain(err error) error {
	if e, ok := errors.AsType[*strconv.NumError](err); ok {
		return fmt.Errorf("%q: %w", e.Num, e.Err)
	}
	return err
}

func (s *Spec) parseFill(text string) error {
	if m := statedFill().FindStringSubmatch(text); m != nil {
		sizes, err := parseSizes(m[1])
		s.Shape = &Shape{Sizes: sizes, AnyType: true}
		return err
	}
	rest, shape, err := cutShape(text)
	if err == nil && rest != s.Fill {
		err = fmt.Errorf("want %s:shape or %[1]s:dtype:shape, such as %[1]s:float32:1x3", s.Fill)
	}
	s.Shape = shape
	return err
}

func (s *Spec) parsePicture(text string) (err error) {
	s.Source = Picture
	at := pictureExt().FindAllStringIndex(text, -1)
	end := at[len(at)-1][1]
	s.Path = strings.TrimSuffix(text[:end], ":")
	if end > len(s.Path) {
		s.Recipe, err = parseRecipe(text[end:])
	}
	return err
}

func (s *Spec) parseSound(text string) (err error) {
	s.Source = Sound
	at := soundExt().FindAllStringIndex(text, -1)
	end := at[len(at)-1][1]
	s.Path = strings.TrimSuffix(text[:end], ":")
	if end > len(s.Path) {
		s.Sound, err = parseSoundRecipe(text[end:])
	}
	return err
}

// parseOptions cuts off options at the end, which determine the kind of file.
func (s *Spec) parseOptions(text string) (rest string, err error) {
	if m := pictureTail().FindStringSubmatchIndex(text); m != nil {
		s.Source = Picture
		s.Recipe, err = parseRecipe(text[m[2]:m[3]])
		return text[:m[0]], err
	}
	if m := soundTail().FindStringSubmatchIndex(text); m != nil {
		s.Source = Sound
		s.Sound, err = parseSoundRecipe(text[m[2]:m[3]])
		return text[:m[0]], err
	}
	return text, nil
}

func (s *Spec) parseFile(text string) (err error) {
	if text, err = s.parseOptions(text); err != nil {
		return err
	}
	if s.Path, s.Shape, err = cutShape(text); err != nil {
		return err
	}
	if s.Path == "" {
		return errors.New("want a file or a value")
	}
	s.Path = Stdin(s.Path)
	switch strings.ToLower(filepath.Ext(s.Path)) {
	case ".npy":
		s.Source = Array
	case ".json":
		s.Source = JSON
	case ".safetensors":
		s.Source = Tensors
	case ".npz":
		s.Source = Archive
		if s.Shape != nil {
			return errors.New("an archive already contains the types")
		}
	}
	return nil
}

// stdin is the file name of standard input.
const stdin = "/dev/stdin"

// Stdin converts a path of the command line, where - is standard input.
func Stdin(path string) string {
	if path == "-" {
		return stdin
	}
	return path
}

// ReadsStdin reports whether the argument is read from standard input.
func (s *Spec) ReadsStdin() bool { return s.Path == stdin }

// cutShape cuts off :dtype:shape at the end. Other text with colons is a path.
func cutShape(text string) (rest string, shape *Shape, err error) {
	m := statedTail().FindStringSubmatchIndex(text)
	if m == nil {
		return text, nil, nil
	}
	d, err := tensor.ParseDType(text[m[2]:m[3]])
	if err != nil {
		return "", nil, fmt.Errorf("%w%s", err, nearest.Hint(text[m[2]:m[3]], dtypeNames()))
	}
	sizes, err := parseSizes(text[m[4]:m[5]])
	if err != nil {
		return "", nil, err
	}
	return text[:m[0]], &Shape{DType: d, Sizes: sizes}, nil
}

// dtypeNames returns the names of all element types.
func dtypeNames() (names []string) {
	for d := range tensor.DType(tensor.NumDTypes) {
		if d.Valid() {
			names = append(names, d.String())
		}
	}
	return names
}

// parseSizes parses "1x3x224x224", or "scalar" for rank 0.
func parseSizes(text string) ([]int, error) {
	if text == "scalar" {
		return []int{}, nil
	}
	var sizes []int
	for part := range strings.SplitSeq(text, "x") {
		n, err := strconv.ParseUint(part, 10, bits.UintSize-1)
		if err != nil {
			return nil, fmt.Errorf("size %q in %q: no number, or too large", part, text)
		}
		sizes = append(sizes, int(n))
	}
	return sizes, tensor.CheckShape(sizes, nil)
}
