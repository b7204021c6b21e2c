// Package callstest makes graphs of operators for tests of what lowers and runs them, with the results of the portable kernels.
package callstest
