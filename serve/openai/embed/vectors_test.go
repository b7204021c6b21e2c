package embed

import (
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
)

// TestUsageOfVectors compares the description of the API with the count of tokens.
func TestUsageOfVectors(t *testing.T) {
	_, schemas := openaitest.Description(t)
	schemas["EmbeddingUsage"].CheckObject(t, "EmbeddingUsage", embeddingUsage{})
}
