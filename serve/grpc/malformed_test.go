package grpc_test

import (
	"strings"
	"testing"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc"
)

// bytesCodec sends bytes as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string                    { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// Messages that are none are refused in the words of the server, by every procedure.
func TestMalformed(t *testing.T) {
	p := start(t, serve.Options{}, grpc.Options{}, serve.Config{Name: "digits", Open: program("digits/portable.pte")})
	for _, procedure := range []string{"ModelInfer", "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelConfig",
		"ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"} {
		for name, message := range map[string]string{"a tag that ends too early": "\xff", "a string that ends too early": "\x0a\x7fab",
			"field 0":         "\x02\x00",
			"a reserved type": "\x0f", "the end of a group": "\x0c", "a number of 11 bytes": "\x08" + strings.Repeat("\xff", 11),
			"not UTF-8": "\x0a\x02\xff\xfe"} {
			in, out := []byte(message), []byte(nil)
			err := p.client.Invoke(t.Context(), service+procedure, &in, &out, rpc.ForceCodec(bytesCodec{}))
			s, _ := status.FromError(err)
			if name == "not UTF-8" && s.Code() == codes.OK { // the procedure has no such field
				continue
			}
			text := s.Message()
			if s.Code() != codes.InvalidArgument || !strings.Contains(text, "malformed message") && !strings.Contains(text, "UTF-8") {
				t.Errorf("%s, %s: %v %q, want a malformed message", procedure, name, s.Code(), text)
			}
			for _, word := range []string{"proto", "unmarshal", "EOF", "wire-format"} {
				if strings.Contains(text, word) {
					t.Errorf("%s, %s: %q has the word %s", procedure, name, text, word)
				}
			}
		}
	}
}
