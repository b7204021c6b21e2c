// Package ollama reads requests to Ollama's API as the chats, completions and vectors that they ask for, and has the form of its answers.
package ollama

import (
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
)

// Reasons of members that are refused.
const (
	noMedia   = "want text"
	noSampler = "there is no such sampler; there are temperature, top_k, top_p, min_p and penalties"
	noDetail  = "the answer cannot contain it"
	noFiles   = "the template is the server's, see --template"
)

// maxMessages is the maximum number of messages of a chat.
const maxMessages = 4096

// options are the members of options. The context, memory and threads are those of the server.
var options = requests.Of(`seed num_predict top_k top_p min_p repeat_last_n temperature repeat_penalty presence_penalty
	frequency_penalty stop`).
	Inert(`num_ctx num_keep num_batch num_gpu main_gpu num_thread numa low_vram f16_kv use_mmap use_mlock mirostat_tau mirostat_eta
		penalize_newline`).
	No(noSampler, "1", "typical_p tfs_z").No(noSampler, "0", "mirostat").No(noDetail, "false", "logits_all vocab_only embedding_only")

// shared are the members of chats and of generated texts. A prompt that is too long is refused, whatever truncate and shift say.
var shared = requests.Of("model stream format think").Inert("keep_alive truncate shift").
	No(noDetail, "false", "logprobs").No(noDetail, "0", "top_logprobs").With(requests.Object{"options": requests.Inside(options, 0)})

// ChatMembers are those of /api/chat.
var ChatMembers = requests.Object{
	"messages": requests.Inside(requests.Of("role content thinking tool_name tool_call_id images").With(requests.Object{
		"tool_calls": requests.Inside(requests.Of("id").Inert("type").With(requests.Object{
			"function": requests.Inside(requests.Of("name arguments").Inert("index description"), 0)}), toolcall.MaxTools),
	}), maxMessages),
	"tools": requests.Inside(requests.Of("type").With(requests.Object{
		"function": requests.Inside(requests.Of("name description parameters").Inert("type"), 0)}), toolcall.MaxTools),
}.With(shared)

// GenerateMembers are those of /api/generate.
var GenerateMembers = requests.Of("prompt system raw images").No("a text is continued at its end", `""`, "suffix").
	No(noFiles, `""`, "template").No("want /api/chat with the messages", "[]", "context").No(noMedia, "0", "width height steps").With(shared)

// EmbedMembers are those of /api/embed, and of /api/embeddings, which has one prompt.
var EmbedMembers = requests.Of("model prompt truncate dimensions").Inert("keep_alive options").
	With(requests.Object{"input": requests.EmbeddingMembers["input"]})

// ShowMembers are those of /api/show.
var ShowMembers = requests.Of("model name").Inert("verbose options").No(noFiles, `""`, "system template")
