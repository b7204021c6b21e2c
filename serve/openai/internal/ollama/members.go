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
var options = requests.Object{
	"seed": {}, "num_predict": {}, "top_k": {}, "top_p": {}, "min_p": {}, "repeat_last_n": {}, "temperature": {}, "repeat_penalty": {},
	"presence_penalty": {}, "frequency_penalty": {}, "stop": {},

	"num_ctx": requests.Inert, "num_keep": requests.Inert, "num_batch": requests.Inert, "num_gpu": requests.Inert, "main_gpu": requests.Inert,
	"num_thread": requests.Inert, "numa": requests.Inert, "low_vram": requests.Inert, "f16_kv": requests.Inert, "use_mmap": requests.Inert,
	"use_mlock": requests.Inert, "mirostat_tau": requests.Inert, "mirostat_eta": requests.Inert, "penalize_newline": requests.Inert,

	"typical_p": requests.No(noSampler, "1"), "tfs_z": requests.No(noSampler, "1"), "mirostat": requests.No(noSampler, "0"),
	"logits_all": requests.No(noDetail, "false"), "vocab_only": requests.No(noDetail, "false"), "embedding_only": requests.No(noDetail, "false"),
}

// shared are the members of chats and of generated texts.
var shared = requests.Object{
	"model": {}, "stream": {}, "format": {}, "think": {}, "options": requests.Inside(options, 0), "keep_alive": requests.Inert,
	"truncate": requests.Inert, "shift": requests.Inert, // a prompt that is too long is refused
	"logprobs": requests.No(noDetail, "false"), "top_logprobs": requests.No(noDetail, "0"),
}

// ChatMembers are those of /api/chat.
var ChatMembers = with(requests.Object{
	"messages": requests.Inside(requests.Object{
		"role": {}, "content": {}, "thinking": {}, "tool_name": {}, "tool_call_id": {}, "images": {},
		"tool_calls": requests.Inside(requests.Object{"id": {}, "type": requests.Inert, "function": requests.Inside(requests.Object{
			"name": {}, "arguments": {}, "index": requests.Inert, "description": requests.Inert}, 0)}, toolcall.MaxTools),
	}, maxMessages),
	"tools": requests.Inside(requests.Object{"type": {}, "function": requests.Inside(requests.Object{"name": {}, "description": {}, "parameters": {},
		"type": requests.Inert}, 0)}, toolcall.MaxTools),
})

// GenerateMembers are those of /api/generate.
var GenerateMembers = with(requests.Object{
	"prompt": {}, "system": {}, "raw": {}, "images": {},
	"suffix": requests.No("a text is continued at its end", `""`), "template": requests.No(noFiles, `""`),
	"context": requests.No("want /api/chat with the messages", "[]"),
	"width":   requests.No(noMedia, "0"), "height": requests.No(noMedia, "0"), "steps": requests.No(noMedia, "0"),
})

// EmbedMembers are those of /api/embed, and of /api/embeddings, which has one prompt.
var EmbedMembers = requests.Object{
	"model": {}, "input": requests.EmbeddingMembers["input"], "prompt": {}, "truncate": {}, "dimensions": {}, "keep_alive": requests.Inert,
	"options": requests.Inert,
}

// ShowMembers are those of /api/show.
var ShowMembers = requests.Object{"model": {}, "name": {}, "verbose": requests.Inert, "system": requests.No(noFiles, `""`),
	"template": requests.No(noFiles, `""`), "options": requests.Inert}

// with adds the members that texts have in common.
func with(o requests.Object) requests.Object {
	for name, m := range shared {
		o[name] = m
	}
	return o
}
