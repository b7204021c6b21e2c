// Package scripts (no compatibility promise) holds the shell scripts that programs of this module run.
package scripts

import _ "embed" // the scripts

// Deps puts Debian's libXNNPACK into a folder. It is for sh, with ETRUN_LIB in its
// environment, an absolute path, and ETRUN_RETARGET, a program that takes the library's
// path.
//
//go:embed deps.sh
var Deps string
