// Command protogen writes Go code from protocol buffer definitions:
//
//	protogen FILE.proto ...
//
// The code of FILE.proto is FILE.pb.go beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := generate(path); err != nil {
			fmt.Fprintf(os.Stderr, "protogen: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

// generate writes the code of one file, which imports no other one.
func generate(path string) error {
	folder, name := filepath.Split(path)
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{filepath.Clean(folder)}},
		SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return err
	}
	description := protodesc.ToFileDescriptorProto(files[0])
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{FileToGenerate: []string{name},
		ProtoFile: []*descriptorpb.FileDescriptorProto{description}})
	if err != nil {
		return err
	}
	plugin.SupportedFeatures = internal_gengo.SupportedFeatures
	internal_gengo.GenerateFile(plugin, plugin.Files[0])
	for _, file := range plugin.Response().File {
		to := filepath.Join(folder, filepath.Base(file.GetName()))
		if err := os.WriteFile(to, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
