package xnn

// Places are the folders that a search goes through.
func Places() []string { return places("") }

// Sonames are the supported versions.
var Sonames = sonames
