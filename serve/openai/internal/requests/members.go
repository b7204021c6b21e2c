package requests

import (
	"reflect"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
)

// maxTexts is the maximum number of texts of a request.
const maxTexts = 128

// Limits on lists of a request.
const (
	maxStop     = 16
	maxStopIDs  = 64
	maxBias     = 1024
	maxMessages = 4096
)

// Reasons of members that are refused.
const (
	noConstraint = "want response_format with a JSON schema, guided_choice, guided_regex, or grammar in GBNF"
	noSpaces     = "JSON has single spaces, or line feeds and spaces"
	noSampler    = "there is no such sampler; there are temperature, top_k, top_p, min_p and penalties"
	noTools      = "want tools and tool_choice"
	noMedia      = "want text"
	dataURI      = "a data URI; nothing is fetched"
	fixedSize    = "pictures have the size that the model takes"
	noFiles      = "want text, a picture as a data URI, or input_audio"
	noTemplate   = "the template is the server's, see --template"
	noBeams      = "there is no beam search"
	noDetail     = "the answer cannot contain it"
)

// common are the members of both kinds of requests. docs/serve-members.md is generated of the tables.
var common = Of(`model stream temperature top_p seed max_tokens n presence_penalty frequency_penalty logprobs top_k min_p repetition_penalty
	repeat_penalty repeat_last_n ignore_eos guided_json json_schema cache_salt grammar regex guided_regex`).
	Inert(`user metadata safety_identifier request_id prompt_cache_key prompt_cache_retention prompt_cache_options client_metadata cache_prompt
		keep_alive prediction mirostat_tau mirostat_eta`).
	No(noConstraint, "", "ebnf guided_grammar guided_decoding_backend guided_whitespace_pattern structural_tag allowed_token_ids").
	No(noConstraint, "[]", "bad_words logits_processors").
	No(noSampler, "0", "mirostat top_a xtc_probability dry_multiplier dynatemp_range epsilon_cutoff eta_cutoff").
	No(noSampler, "1", "typical_p tfs_z").No(noSampler, "-1 0", "top_n_sigma").
	No("the order of the samplers is fixed", "", "samplers").No("see ignore_eos", "0", "min_tokens").
	No(noBeams, "false", "use_beam_search early_stopping").No(noBeams, "1", "length_penalty").
	No(noDetail, "0", "prompt_logprobs").No(noDetail, "false", "return_tokens_as_token_ids timings_per_token").
	No("control tokens have no text", "true", "skip_special_tokens spaces_between_special_tokens").
	No("a text ends before the stop string", "false", "include_stop_str_in_output").
	No("shorten the prompt", "", "truncate_prompt_tokens").No("want max_tokens", "", "n_predict").
	No("want the members themselves", "", "options").No("requests run in their order", "0", "priority").
	No("texts are not judged", "", "moderation").
	With(Object{
		"stop": {most: maxStop}, "logit_bias": {most: maxBias}, "stop_token_ids": {most: maxStopIDs}, "guided_choice": {most: maxMessages},
		"store":        {use: inert, why: "nothing is stored"},
		"service_tier": {use: inert, why: "all requests have the same"},
		"response_format": {inside: Of("type schema").No("want grammar", "", "grammar").With(Object{
			"json_schema": {inside: Of("strict schema").Inert("name description")}})},
		"stream_options": {inside: Of("include_usage").No("only the last event has them", "false", "continuous_usage_stats").With(Object{
			"include_obfuscation": {use: inert, why: "events are not padded"}})},
		"structured_outputs": {inside: Of("json regex grammar json_object").Inert("disable_fallback").
			No(noSpaces, "", "whitespace_pattern").No(noSpaces, "false", "disable_any_whitespace").
			No("properties that the schema does not list are not written", "true false", "disable_additional_properties").
			No("want tools", "", "structural_tag").With(Object{"choice": {most: maxMessages}})},
	})

// CompletionMembers are those of completions.
var CompletionMembers = Of("echo best_of").No("a text is continued at its end", `""`, "suffix").
	No("a text begins with the model's first token", "true", "add_special_tokens").With(Object{"prompt": {most: maxTexts}}).With(common)

// part are the members of a part of a message's text.
var part = Of("type text").Inert("cache_control prompt_cache_breakpoint").No(noFiles, "", "video_url audio_url file").
	No(noMedia, "", "refusal").With(Object{"input_audio": {inside: audioPart},
	"image_url": {inside: Object{"url": {why: dataURI}, "detail": {use: inert, why: fixedSize}}}})

// audioPart are the members of a sound.
var audioPart = Object{"data": {}, "format": {why: "wav or flac"}}

// messageMembers are those of a message.
var messageMembers = Of("role name tool_call_id reasoning reasoning_content").No(noTools, "", "function_call").No(noMedia, `""`, "refusal").
	No(noMedia, "", "audio").No(noMedia, "[]", "annotations").No("want continue_final_message", "false", "prefix").
	With(Object{"content": {inside: part, most: maxMessages},
		"tool_calls": {most: toolcall.MaxTools, inside: Of("id type").Inert("index").With(Object{
			"function": {inside: Of("name arguments")}, "custom": {inside: Of("name input")}})}})

// chatTools are the members of tools of chats, by their type. Descriptions are for the template.
var chatTools = map[string]Object{
	"function": {"type": {}, "function": {inside: Of("name description parameters strict")}},
	"custom": {"type": {}, "custom": {inside: Of("name description").With(Object{"format": {inside: Of("type").With(Object{
		"grammar": {inside: Of("syntax definition")}})}})}},
}

// toolNames are the members of the name of a tool, by its type: of responses, or of chats.
var toolNames = map[string]Object{
	"function": {"type": {}, "name": {}, "function": {inside: Of("name")}},
	"custom":   {"type": {}, "name": {}, "custom": {inside: Of("name")}},
}

// toolChoices are the members of tool_choice, by its type.
var toolChoices = map[string]Object{"function": toolNames["function"], "custom": toolNames["custom"],
	"allowed_tools": Of("type").With(Object{"allowed_tools": {inside: allowed}}).With(allowed)}

var allowed = Object{"mode": {}, "tools": {most: toolcall.MaxTools, types: toolNames}}

// ChatMembers are those of chat completions.
var ChatMembers = Of(`max_completion_tokens top_logprobs continue_final_message add_generation_prompt chat_template_kwargs
	parallel_tool_calls`).
	Inert("verbosity").No(noMedia, `["text"] []`, "modalities").No(noMedia, "", "audio").No(noTools, "[]", "functions").
	No(noTools, `"none" "auto"`, "function_call").No(noTools, "", "web_search_options").
	No("want chat_template_kwargs", "", "thinking enable_thinking think").
	No(noTemplate, "", "chat_template").No(noTemplate, "[]", "documents").
	No("the answer has the reply only", "false", "echo").
	With(Object{
		"messages": {inside: messageMembers, most: maxMessages}, "tools": {most: toolcall.MaxTools, types: chatTools},
		"tool_choice":      {types: toolChoices},
		"reasoning_effort": {why: "only `none` has an effect without a variable of the template"},
	}).With(common)

// memberOf returns the path of a member of a request, without the Go types that it is embedded in.
func memberOf(field string, o Object) string {
	for {
		first, rest, more := strings.Cut(field, ".")
		if _, known := o[first]; known || !more {
			return field
		}
		field = rest
	}
}

// valueKinds names kinds of JSON values that package json names otherwise.
var valueKinds = map[string]string{"bool": "true or false", "array": "a list", "object": "an object", "string": "a string",
	"number": "a number"}

// kindOf names a kind of Go values as JSON does.
func kindOf(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an integer"
}
