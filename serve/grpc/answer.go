package grpc

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etrun-go/etrun/serve/oip"
)

// answer is a ModelInferResponse. Its outputs are raw_output_contents, in their order.
type answer struct{ response *oip.Response }

// streamed is a ModelStreamInferResponse: an answer, or an error and the id of its request.
type streamed struct {
	response oip.Response
	text     string
}

func field(dst []byte, n protowire.Number, data string) []byte {
	if data == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, n, protowire.BytesType), data)
}

// head returns the message without the contents of the outputs, and the size of these.
func (a answer) head() (head []byte, rest int) {
	head = field(nil, 1, a.response.Model)
	head = field(head, 2, a.response.Version)
	head = field(head, 3, a.response.ID)
	for i := range a.response.Outputs {
		o := &a.response.Outputs[i]
		text := field(field(nil, 1, o.Name), 2, string(o.Datatype))
		var sizes []byte
		for _, n := range o.Shape {
			sizes = protowire.AppendVarint(sizes, uint64(n))
		}
		text = field(text, 3, string(sizes))
		head = protowire.AppendBytes(protowire.AppendTag(head, 5, protowire.BytesType), text)
		rest += protowire.SizeTag(6) + protowire.SizeBytes(o.DataSize())
	}
	return head, rest
}

// append implements message.
func (a answer) append(dst []byte) []byte {
	head, rest := a.head()
	return a.appendTo(slices.Grow(dst, len(head)+rest), head)
}

func (a answer) appendTo(dst, head []byte) []byte {
	dst = append(dst, head...)
	for i := range a.response.Outputs {
		o := &a.response.Outputs[i]
		dst = protowire.AppendTag(dst, 6, protowire.BytesType)
		dst = o.AppendData(protowire.AppendVarint(dst, uint64(o.DataSize())))
	}
	return dst
}

// append implements message.
func (s *streamed) append(dst []byte) []byte {
	a := answer{&s.response}
	head, rest := a.head()
	dst = field(slices.Grow(dst, len(s.text)+len(head)+rest+32), 1, s.text)
	dst = protowire.AppendTag(dst, 2, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(head)+rest))
	return a.appendTo(dst, head)
}
