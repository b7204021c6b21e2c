package xnn

// Places are the folders that a search goes through.
func Places() []string { return places("") }
