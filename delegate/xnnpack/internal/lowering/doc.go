// Package lowering converts graphs of ATen operators to graphs of nodes. A table has an entry for each
// operator.
package lowering
