package llama

import (
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
)

// The documentation lists every member of its own, and the description of the API none that there is not.
func TestMembersAreDescribed(t *testing.T) {
	page, err := os.ReadFile(openaitest.Folder("docs", "serve-doors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## llama-server's API")
	section, _, _ = strings.Cut(section, "\n## ")
	for member := range own {
		if !strings.Contains(section, "`"+member+"`") {
			t.Errorf("docs/serve-doors.md does not list %s", member)
		}
	}
	_, schemas := openaitest.Description(t)
	for name, o := range map[string]requests.Object{"LlamaCompletion": CompletionMembers, "ApplyTemplate": TemplateMembers} {
		for member := range schemas[name].Properties {
			if _, ok := o[member]; !ok {
				t.Errorf("%s has no member %s", name, member)
			}
		}
	}
}
