package requests

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/media/picture"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/text"
)

// content is the text of a message, with pictures and sounds.
type content struct {
	Text  string
	media []medium
}

// medium is a picture or a sound in a message.
type medium struct {
	kind   text.Medium
	at     int    // byte of the text that it precedes
	member string // in the request
	file   []byte
}

// contentPart is a part of a message, of chats and of responses.
type contentPart struct {
	Type  string          `json:"type"`
	Text  *string         `json:"text"`
	Image json.RawMessage `json:"image_url"` // a string, or an object with one
	Audio *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// maxMedia bounds the pictures and sounds of a message.
const maxMedia = 64

// UnmarshalJSON accepts a string, and a list of parts.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, &c.Text)
	}
	var parts []contentPart
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for i := range parts {
		if err := c.add("messages.content", fmt.Sprintf("part %d", i), &parts[i], []string{"text"}); err != nil {
			return err
		}
	}
	return nil
}

// add adds a part. texts are the types of parts that are text.
func (c *content) add(place, which string, p *contentPart, texts []string) error {
	var m medium
	var err error
	switch p.Type {
	case "image_url", "input_image":
		m.kind, m.member = text.Picture, place+".image_url"
		m.file, err = p.picture(m.member, which)
	case "input_audio":
		m.kind, m.member = text.Sound, place+".input_audio"
		m.file, err = p.sound(m.member, which)
	default:
		if !slices.Contains(texts, p.Type) {
			return fault.Refused(place, "%s of the type %s, want %s, a picture or input_audio", which, fault.Quote(p.Type), texts[0])
		}
		if p.Text == nil {
			return fault.Refused(place, "%s without text", which)
		}
		c.Text += *p.Text
		return nil
	}
	if err == nil && len(c.media) >= maxMedia {
		err = fault.Refused(place, "more than %d pictures and sounds", maxMedia)
	}
	m.at = len(c.Text)
	c.media = append(c.media, m)
	return err
}

// AddPictures adds pictures in base64 before the text.
func (c *content) AddPictures(place string, list []string) error {
	if len(list) > maxMedia {
		return fault.Refused(place, "more than %d pictures", maxMedia)
	}
	for i, data := range list {
		file, err := decoded(place, fmt.Sprintf("picture %d", i), data)
		if err != nil {
			return err
		}
		c.media = append(c.media, medium{kind: text.Picture, member: place, file: file})
	}
	return nil
}

// picture returns the file of a data URI. Nothing is fetched.
func (p *contentPart) picture(place, which string) ([]byte, error) {
	var url string
	var object struct {
		URL string `json:"url"`
	}
	switch {
	case len(p.Image) > 0 && p.Image[0] == '"' && json.Unmarshal(p.Image, &url) == nil:
	case json.Unmarshal(p.Image, &object) == nil:
		url = object.URL
	}
	if url == "" {
		return nil, fault.Refused(place, "%s without it", which)
	}
	head, data, ok := strings.Cut(url, ",")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.HasSuffix(head, ";base64") {
		return nil, fault.Refused(place, "%s: %.60q, want a data URI such as data:image/png;base64,…: nothing is fetched", which, url)
	}
	return decoded(place, which, data)
}

// sound returns the file of a recording.
func (p *contentPart) sound(place, which string) ([]byte, error) {
	if p.Audio == nil {
		return nil, fault.Refused(place, "%s without it", which)
	}
	if f := p.Audio.Format; f != "wav" && f != "flac" && f != "" {
		return nil, fault.Refused(place, "%s: format %.40q: not supported: want wav or flac", which, f)
	}
	return decoded(place, which, p.Audio.Data)
}

func decoded(place, which, data string) ([]byte, error) {
	file, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(file) == 0 {
		return nil, fault.Refused(place, "%s: no bytes in base64", which)
	}
	return file, nil
}

// TextOnly refuses pictures and sounds.
func (r *Chat) TextOnly() error {
	for _, x := range r.Messages {
		if c := orZero(x.Content); len(c.media) > 0 {
			return fault.Refused(c.media[0].member, "a %s, which has no text and no tokens", c.media[0].kind)
		}
	}
	return nil
}

// memory estimates the bytes that the media of a chat take when they are decoded.
func (r *Chat) memory() (n int64, err error) {
	for i := range r.Messages {
		if c := r.Messages[i].Content; c != nil {
			for _, m := range c.media {
				bytes, err := m.memory()
				if err != nil {
					return 0, fault.Refused(m.member, "%v", err)
				}
				n += bytes
			}
		}
	}
	return n, nil
}

func (m *medium) memory() (int64, error) {
	if m.kind == text.Picture {
		return picture.Memory(m.file)
	}
	if !sound.IsStart(m.file) {
		return 0, fmt.Errorf("%w: want a WAVE or FLAC file", sound.ErrFormat)
	}
	const floats = 16 // of 8-bit samples: all channels, one, and at the model's rate
	return floats * int64(len(m.file)), nil
}

// encode returns the messages of a conversation with the parts that the model has made of the media of the request.
func (r *Chat) encode(ctx context.Context, m *text.Model, d *text.Conversation) (*text.Conversation, []*text.Part, error) {
	var parts []*text.Part
	with := *d
	with.Messages = slices.Clone(d.Messages)
	for i := range r.Messages {
		c := r.Messages[i].Content
		if c == nil {
			continue
		}
		for _, x := range c.media {
			if !slices.Contains(m.Info().Media, x.kind) {
				return nil, nil, fault.Refused(x.member, "a %s: the model takes none", x.kind)
			}
			p, err := m.EncodePart(ctx, x.kind, x.file)
			if _, bad := errors.AsType[*text.MediaError](err); bad {
				return nil, nil, fault.Refused(x.member, "%v", err)
			}
			if err != nil { // of the encoder, or the request has ended
				return nil, nil, &fault.Unmade{Err: err}
			}
			with.Messages[i].Parts = append(with.Messages[i].Parts, text.Placed{At: x.at, Part: p})
			parts = append(parts, p)
		}
	}
	return &with, parts, nil
}
