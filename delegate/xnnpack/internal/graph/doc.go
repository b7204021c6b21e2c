// Package graph (no compatibility promise) contains checked graphs of XNNPACK's nodes: values and nodes,
// the parser and the writer of payloads, the checks, shapes and costs of every type of node, and the
// repair of known faults of exporters. It knows no engine.
package graph
