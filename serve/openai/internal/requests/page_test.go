package requests

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
)

var update = flag.Bool("update", false, "write the page of members")

// sections are those of the page, with the tables that they list.
var sections = []struct {
	title, text string
	members     Object
}{
	{"Completions and chat completions", "`/v1/completions` and `/v1/chat/completions` have these members in common.", common},
	{"Completions", "`/v1/completions` has these, too.", CompletionMembers},
	{"Chat completions", "`/v1/chat/completions` has these, too.", ChatMembers},
	{"Responses", "`/v1/responses`. In `input[]` each member belongs to items of some types only.", ResponseMembers},
	{"Embeddings", "`/v1/embeddings`.", EmbeddingMembers},
	{"Tokens", "`/tokenize`. What belongs to messages and tools is as in chat completions.", TokenizeMembers},
	{"Texts of tokens", "`/detokenize`.", DetokenizeMembers},
}

const pageBegin = `# Members of requests

This page lists the members of requests to the paths of OpenAI's API, for each path. It is generated from the server's tables.

| class | what happens |
|---|---|
| done | The member has its effect. |
| accepted | The member asks for something extra, such as a label for a log. It changes no answer. |
| refused | The answer would not be what the request asks for. The request gets 400 with the code ` + "`unsupported_parameter`" + `, and ` + "`param`" + ` names the member. |

A refused member is accepted with the values in the last column: they ask for nothing. ` + "`null`" + ` counts as an absent member, everywhere but in lists and in ` +
	"`logit_bias`" + `. A member that this page does not have gets 400 with the code ` + "`unknown_parameter`" + `.

Tools of other types than ` + "`function` and `custom`" + `, such as ` + "`web_search` or `mcp`" + `, are not run by the server. The model knows nothing of them, and the header
` + "`Etrun-Tools-Not-Offered`" + ` of the answer names their types. Their members are not checked. A ` + "`tool_choice`" + ` that forces such a tool is refused.
`

// rowsOf returns the rows of the members of an object, by their paths.
func rowsOf(path string, o Object, nested bool) map[string]string {
	rows := make(map[string]string)
	for name, m := range o {
		at := inner(path, name)
		accepted := ""
		for _, v := range strings.Fields(m.neutral) {
			accepted += ", `" + v + "`"
		}
		class := [...]string{honoured: "done", inert: "accepted", unable: "refused"}[m.use]
		rows[at] = fmt.Sprintf("| `%s` | %s | %s | %s |\n", at, class, m.why, strings.TrimPrefix(accepted, ", "))
		if m.most > 0 {
			at += "[]"
		}
		for _, in := range append(slices.Collect(maps.Values(m.types)), m.inside) {
			if nested {
				maps.Copy(rows, rowsOf(at, in, nested))
			}
		}
	}
	return rows
}

// pageOf returns the page of the members.
func pageOf() string {
	page := pageBegin
	for _, s := range sections {
		rows := rowsOf("", s.members, s.title != "Tokens")
		for at := range rowsOf("", common, true) {
			if s.title == "Completions" || s.title == "Chat completions" {
				delete(rows, at)
			}
		}
		page += "\n## " + s.title + "\n\n" + s.text + "\n\n| member | class | remark | accepted values |\n|---|---|---|---|\n"
		for _, at := range slices.Sorted(maps.Keys(rows)) {
			page += rows[at]
		}
	}
	return page
}

// The page of members is that of the tables.
func TestMembersPage(t *testing.T) {
	path := openaitest.Folder("docs", "serve-members.md")
	if *update {
		if err := os.WriteFile(path, []byte(pageOf()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil || string(page) != pageOf() {
		t.Errorf("docs/serve-members.md is not that of the tables (%v): go test ./serve/openai/internal/requests -run TestMembersPage -update", err)
	}
}

// openAI are the members of requests in the types of OpenAI's npm client, version 6.49. A list has those that the server must refuse,
// since it would answer otherwise than asked, behind a bar.
var openAI = []struct {
	name    string
	members Object
	list    string
}{
	{"chat", ChatMembers, `frequency_penalty logit_bias logprobs max_completion_tokens max_tokens messages metadata model n parallel_tool_calls prediction
		presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed
		service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
		| audio function_call functions modalities moderation web_search_options`},
	{"completion", CompletionMembers, `best_of echo frequency_penalty logit_bias logprobs max_tokens model n presence_penalty prompt seed stop stream
		stream_options temperature top_p user | suffix`},
	{"response", ResponseMembers, `include input instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls prompt_cache_key
		prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools
		top_p truncation user | background context_management conversation moderation previous_response_id prompt top_logprobs`},
	{"embedding", EmbeddingMembers, `dimensions encoding_format input model user |`},
	{"stream_options of chats", common["stream_options"].inside, `include_obfuscation include_usage |`},
	{"stream_options of responses", ResponseMembers["stream_options"].inside, `include_obfuscation |`},
	{"reasoning", ResponseMembers["reasoning"].inside, `context effort generate_summary mode summary |`},
	{"text", ResponseMembers["text"].inside, `format verbosity |`},
	{"text.format", ResponseMembers["text"].inside["format"].inside, `description name schema strict type |`},
	{"response_format", common["response_format"].inside, `json_schema type |`},
	{"json_schema", common["response_format"].inside["json_schema"].inside, `description name schema strict |`},
	{"message", messageMembers, `content name role tool_call_id tool_calls | audio function_call refusal`},
	{"part", part, `text type prompt_cache_breakpoint image_url input_audio | refusal file`},
	{"call", messageMembers["tool_calls"].inside, `custom function id type |`},
	{"function of chats", chatTools["function"]["function"].inside, `description name parameters strict |`},
	{"custom tool of chats", chatTools["custom"]["custom"].inside, `description format name |`},
	{"function of responses", flatTools["function"], `allowed_callers defer_loading description name output_schema parameters strict type |`},
	{"custom tool of responses", flatTools["custom"], `allowed_callers defer_loading description format name type |`},
	{"item message", itemTypes["message"], `content id phase role status type |`},
	{"item function_call", itemTypes["function_call"], `arguments call_id caller id name namespace status type |`},
	{"item function_call_output", itemTypes["function_call_output"], `call_id caller id output status type |`},
	{"item custom_tool_call", itemTypes["custom_tool_call"], `call_id caller id input name namespace type |`},
	{"item custom_tool_call_output", itemTypes["custom_tool_call_output"], `call_id caller id output type |`},
	{"item reasoning", itemTypes["reasoning"], `content id status summary type | encrypted_content`},
	{"part of an item", itemPart, `prompt_cache_breakpoint text type detail image_url input_audio | annotations file_data file_id file_url filename logprobs refusal`},
}

// Each member of OpenAI's API has its class: done or accepted, or refused if the answer would not be what was asked.
func TestOpenAIMembers(t *testing.T) {
	for _, c := range openAI {
		accepted, refused, _ := strings.Cut(c.list, "|")
		for _, name := range append(strings.Fields(accepted), strings.Fields(refused)...) {
			m, ok := c.members[name]
			if want := slices.Contains(strings.Fields(refused), name); !ok || (m.use == unable) != want {
				t.Errorf("%s: %s is listed: %v, refused: %v, want a member that is refused: %v", c.name, name, ok, m.use == unable, want)
			}
		}
	}
}
