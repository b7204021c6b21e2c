package main

import (
	"regexp"
	"strings"
)

var (
	described = regexp.MustCompile(`^v(\d+(?:\.\d+)*)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)
	unusual   = regexp.MustCompile(`[^a-z0-9]+`)
)

// pythonVersion converts the description of a commit to a version of PEP 440: v0.1.0 is 0.1.0,
// v0.1.0-5-g12ab is 0.1.0.post5+g12ab. What has no tag is 0+ and the description.
func pythonVersion(release string) string {
	m := described.FindStringSubmatch(release)
	if m == nil {
		local := strings.Trim(unusual.ReplaceAllString(strings.ToLower(release), "."), ".")
		if local == "" {
			return "0"
		}
		return "0+" + local
	}
	version, local := m[1], m[3]
	if m[2] != "" {
		version, local = version+".post"+m[2], "g"+local
	}
	if m[4] != "" {
		local = strings.TrimPrefix(local+".dirty", ".")
	}
	if local != "" {
		version += "+" + local
	}
	return version
}
