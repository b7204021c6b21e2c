package grpc

import (
	"bytes"
	"flag"
	"os"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	alphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

var update = flag.Bool("update", false, "rewrite standard.binpb")

// standard.binpb has the definitions of Google's library.
func TestStandard(t *testing.T) {
	var set descriptorpb.FileDescriptorSet
	for _, f := range []protoreflect.FileDescriptor{healthpb.File_grpc_health_v1_health_proto, reflectionpb.File_grpc_reflection_v1_reflection_proto,
		alphapb.File_grpc_reflection_v1alpha_reflection_proto} {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("standard.binpb", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(standard, want) {
		t.Error("standard.binpb is another one: go test -run TestStandard -update")
	}
}
