package embed

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"sort"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
)

// maxDocuments is the maximum number of texts that are compared with one.
const maxDocuments = 2047

// RerankMembers are those of /v1/rerank.
var RerankMembers = requests.Of("model query top_n return_documents truncate_prompt_tokens").Inert("user").
	No("a text is compared as one", "", "max_chunks_per_doc").No("want truncate_prompt_tokens", "", "max_tokens_per_doc").
	With(requests.Object{"documents": requests.Inside(requests.Of("text"), maxDocuments), "priority": requests.EmbeddingMembers["priority"]})

// SimilarityMembers are those of /similarity.
var SimilarityMembers = requests.Of("model").With(requests.Object{
	"inputs": requests.Inside(requests.Of("source_sentence").With(requests.Object{"sentences": requests.Inside(nil, maxDocuments)}), 0),
	"parameters": requests.Inside(requests.Of("truncate").
		No("put the text of the model's prompt before the input", "", "prompt_name").
		No("the first tokens are used", `"Right"`, "truncation_direction"), 0),
})

// Comparison asks for the similarity of a text with others.
type Comparison struct {
	requests.Embedding
	scores []float64
	first  []float32
}

// ask sets the texts of the request for vectors that it is.
func (c *Comparison) ask(one, others string, first *string, texts []string) error {
	switch {
	case first == nil:
		return fault.Missing(one)
	case texts == nil:
		return fault.Missing(others)
	}
	c.Input = []requests.Prompt{{Text: first}}
	for i := range texts {
		c.Input = append(c.Input, requests.Prompt{Text: &texts[i]})
	}
	return c.Embedding.Check()
}

// Add adds a vector: that of the text with which the others are compared, then theirs.
func (c *Comparison) Add(vector []float32) error {
	if c.first == nil {
		c.first = slices.Clone(vector)
		return nil
	}
	c.scores = append(c.scores, cosine(c.first, vector))
	return nil
}

// cosine returns the cosine of the angle between two vectors, 0 if one of them has no length.
func cosine(a, b []float32) float64 {
	dot, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if cos := dot / math.Sqrt(aa*bb); !math.IsNaN(cos) && !math.IsInf(cos, 0) { // which have no JSON
		return cos
	}
	return 0
}

// Rerank asks for documents in the order of their similarity with a query.
type Rerank struct {
	Comparison
	Query     *string    `json:"query"`
	Documents []document `json:"documents"`
	Top       *int       `json:"top_n"`
	Return    bool       `json:"return_documents"`
}

// document is a text, or an object with one.
type document struct {
	Text string `json:"text"`
}

// UnmarshalJSON accepts a string, and an object with a text.
func (d *document) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &d.Text)
	}
	type object document
	return json.Unmarshal(b, (*object)(d))
}

// Check refuses values that no model accepts.
func (r *Rerank) Check() error {
	if r.Top != nil && *r.Top < 1 {
		return fault.Refused("top_n", "%d, want 1 or more", *r.Top)
	}
	var texts []string
	for _, d := range r.Documents {
		texts = append(texts, d.Text)
	}
	return r.ask("query", "documents", r.Query, texts)
}

// ranked is a document in the order of a rerank.
type ranked struct {
	Index    int       `json:"index"`
	Score    float64   `json:"relevance_score"`
	Document *document `json:"document,omitzero"`
}

// Answer returns the documents, the most similar one first.
func (r *Rerank) Answer(model string, tokens int) any {
	list := make([]ranked, len(r.scores))
	for i, s := range r.scores {
		if list[i] = (ranked{Index: i, Score: s}); r.Return {
			list[i].Document = &r.Documents[i]
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return cmp.Less(list[k].Score, list[i].Score) })
	if r.Top != nil {
		list = list[:min(*r.Top, len(list))]
	}
	return &struct {
		Object  string         `json:"object"`
		Model   string         `json:"model"`
		Results []ranked       `json:"results"`
		Usage   embeddingUsage `json:"usage"`
	}{"list", model, list, embeddingUsage{tokens, tokens}}
}

// Similarity asks for the similarity of a sentence with others.
type Similarity struct {
	Comparison
	Inputs struct {
		Source    *string  `json:"source_sentence"`
		Sentences []string `json:"sentences"`
	} `json:"inputs"`
	Parameters struct {
		Truncate bool `json:"truncate"`
	} `json:"parameters"`
}

// Check refuses values that no model accepts.
func (s *Similarity) Check() error {
	if all := -1; s.Parameters.Truncate {
		s.Truncate = &all
	}
	return s.ask("inputs.source_sentence", "inputs.sentences", s.Inputs.Source, s.Inputs.Sentences)
}

// Answer returns the similarities in the order of the sentences.
func (s *Similarity) Answer(string, int) any { return append([]float64{}, s.scores...) }
