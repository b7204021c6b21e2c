package answer

import (
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
)

// TestUsageIsDescribed compares the description of the API with the count of tokens.
func TestUsageIsDescribed(t *testing.T) {
	_, schemas := openaitest.Description(t)
	schemas["Usage"].CheckObject(t, "Usage", usage{})
}
