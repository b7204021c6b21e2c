//go:build nodl || !linux || !(amd64 || arm64)

package xnn

// DynamicLoading reports whether this build can open libraries.
const DynamicLoading = false

func dlopen(string, bool) (uintptr, error) { return 0, errNoLoading }

func sonameOf(string) (string, error) { return "", errNoLoading }

func dlsym(uintptr, string) uintptr { return 0 }

func trim(uintptr) {}

func bind(*Functions, map[string]uintptr) {}

func newProvider(uintptr) WeightsCache { return 0 }

func freeProvider(WeightsCache) {}
