// Package lowering (no compatibility promise) converts graphs of ATen operators to graphs of nodes. A
// table has an entry for each operator.
package lowering
