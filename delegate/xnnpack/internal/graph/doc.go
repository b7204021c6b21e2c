// Package graph contains checked graphs of XNNPACK's nodes: their values and nodes, the parser and the
// writer of payloads, checks, shapes and costs of every type of node, and the repair of known faults
// of exporters. It knows no engine.
package graph
