// Package inference (no compatibility promise) has the messages of the Open Inference Protocol and of Triton's extensions to it,
// generated from inference.proto.
package inference

// Definition is the FileDescriptorProto of inference.proto, encoded.
const Definition = file_inference_proto_rawDesc
