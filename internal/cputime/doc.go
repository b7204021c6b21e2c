// Package cputime has the clocks of tests that bound or compare what something costs:
// unlike the wall's, they stand still while a busy machine does something else.
// Where the system is not Linux they are the wall's.
package cputime
