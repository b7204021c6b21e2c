package requests

import (
	"maps"
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
var common = Object{
	"model": {}, "stream": {}, "temperature": {}, "top_p": {}, "seed": {}, "stop": {most: maxStop}, "logit_bias": {most: maxBias},
	"max_tokens": {}, "n": {}, "presence_penalty": {}, "frequency_penalty": {}, "logprobs": {},
	"top_k": {}, "min_p": {}, "repetition_penalty": {}, "repeat_penalty": {}, "repeat_last_n": {}, "ignore_eos": {},
	"stop_token_ids": {most: maxStopIDs},
	"response_format": {inside: Object{"type": {}, "schema": {}, "grammar": no("want grammar"), "json_schema": {inside: Object{
		"name": {use: inert}, "description": {use: inert}, "strict": {}, "schema": {}}}}},
	"guided_json": {}, "json_schema": {},
	"stream_options": {inside: Object{"include_usage": {}, "include_obfuscation": {use: inert, why: "events are not padded"},
		"continuous_usage_stats": no("only the last event has them", "false")}},

	"cache_salt": {},

	"user": {use: inert}, "metadata": {use: inert}, "safety_identifier": {use: inert}, "request_id": {use: inert},
	"store": {use: inert, why: "nothing is stored"}, "service_tier": {use: inert, why: "all requests have the same"},
	"prompt_cache_key": {use: inert}, "prompt_cache_retention": {use: inert}, "prompt_cache_options": {use: inert},
	"client_metadata": {use: inert}, "cache_prompt": {use: inert}, "keep_alive": {use: inert}, "prediction": {use: inert},
	"mirostat_tau": {use: inert}, "mirostat_eta": {use: inert},

	"grammar": {}, "regex": {}, "guided_regex": {}, "guided_choice": {most: maxMessages},
	"structured_outputs": {inside: Object{"json": {}, "regex": {}, "choice": {most: maxMessages}, "grammar": {}, "json_object": {},
		"whitespace_pattern": no(noSpaces), "disable_any_whitespace": no(noSpaces, "false"),
		"disable_additional_properties": no("properties that the schema does not list are not written", "true", "false"),
		"disable_fallback":              {use: inert}, "structural_tag": no("want tools")}},
	"ebnf": no(noConstraint), "guided_grammar": no(noConstraint),
	"guided_decoding_backend":   no(noConstraint),
	"guided_whitespace_pattern": no(noConstraint), "structural_tag": no(noConstraint), "bad_words": no(noConstraint, "[]"),
	"allowed_token_ids": no(noConstraint), "logits_processors": no(noConstraint, "[]"),

	"mirostat": no(noSampler, "0"), "typical_p": no(noSampler, "1"), "tfs_z": no(noSampler, "1"), "top_a": no(noSampler, "0"),
	"top_n_sigma": no(noSampler, "-1", "0"), "xtc_probability": no(noSampler, "0"), "dry_multiplier": no(noSampler, "0"),
	"dynatemp_range": no(noSampler, "0"), "epsilon_cutoff": no(noSampler, "0"), "eta_cutoff": no(noSampler, "0"),
	"samplers": no("the order of the samplers is fixed"), "min_tokens": no("see ignore_eos", "0"),

	"use_beam_search": no(noBeams, "false"), "length_penalty": no(noBeams, "1"), "early_stopping": no(noBeams, "false"),
	"prompt_logprobs": no(noDetail, "0"), "return_tokens_as_token_ids": no(noDetail, "false"), "timings_per_token": no(noDetail, "false"),
	"skip_special_tokens": no("control tokens have no text", "true"), "spaces_between_special_tokens": no("control tokens have no text",
		"true"),
	"include_stop_str_in_output": no("a text ends before the stop string", "false"),
	"truncate_prompt_tokens":     no("shorten the prompt"), "n_predict": no("want max_tokens"), "options": no("want the members themselves"),
	"priority": no("requests run in their order", "0"), "moderation": no("texts are not judged"),
}

// CompletionMembers are those of completions.
var CompletionMembers = with(Object{
	"prompt": {most: maxTexts}, "echo": {}, "best_of": {},
	"suffix":             no("a text is continued at its end", `""`),
	"add_special_tokens": no("a text begins with the model's first token", "true"),
}, common)

// part are the members of a part of a message's text.
var part = Object{
	"type": {}, "text": {}, "cache_control": {use: inert}, "prompt_cache_breakpoint": {use: inert},
	"image_url": {inside: Object{"url": {why: dataURI}, "detail": {use: inert, why: fixedSize}}},
	"video_url": no(noFiles), "audio_url": no(noFiles), "input_audio": {inside: audioPart}, "file": no(noFiles),
	"refusal": no(noMedia),
}

// audioPart are the members of a sound.
var audioPart = Object{"data": {}, "format": {why: "wav or flac"}}

// messageMembers are those of a message.
var messageMembers = Object{
	"role": {}, "content": {inside: part, most: maxMessages},
	"name": {}, "tool_call_id": {}, "reasoning": {}, "reasoning_content": {}, "function_call": no(noTools),
	"tool_calls": {most: toolcall.MaxTools, inside: Object{"id": {}, "type": {}, "index": {use: inert},
		"function": {inside: Object{"name": {}, "arguments": {}}}, "custom": {inside: Object{"name": {}, "input": {}}}}},
	"refusal": no(noMedia, `""`), "audio": no(noMedia), "annotations": no(noMedia, "[]"),
	"prefix": no("want continue_final_message", "false"),
}

// chatTools are the members of tools of chats, by their type. Descriptions are for the template.
var chatTools = map[string]Object{
	"function": {"type": {}, "function": {inside: Object{"name": {}, "description": {}, "parameters": {}, "strict": {}}}},
	"custom": {"type": {}, "custom": {inside: Object{"name": {}, "description": {}, "format": {inside: Object{"type": {},
		"grammar": {inside: Object{"syntax": {}, "definition": {}}}}}}}},
}

// toolNames are the members of the name of a tool, by its type: of responses, or of chats.
var toolNames = map[string]Object{"function": {"type": {}, "name": {}, "function": {inside: Object{"name": {}}}},
	"custom": {"type": {}, "name": {}, "custom": {inside: Object{"name": {}}}}}

// toolChoices are the members of tool_choice, by its type.
var toolChoices = with(map[string]Object{"allowed_tools": with(Object{"type": {}, "allowed_tools": {inside: allowed}}, allowed)}, toolNames)

var allowed = Object{"mode": {}, "tools": {most: toolcall.MaxTools, types: toolNames}}

// ChatMembers are those of chat completions.
var ChatMembers = with(Object{
	"messages": {inside: messageMembers, most: maxMessages}, "max_completion_tokens": {}, "top_logprobs": {},
	"continue_final_message": {}, "add_generation_prompt": {}, "chat_template_kwargs": {},
	"modalities": no(noMedia, `["text"]`, "[]"), "audio": no(noMedia), "parallel_tool_calls": {},
	"tools":         {most: toolcall.MaxTools, types: chatTools},
	"tool_choice":   {types: toolChoices},
	"functions":     no(noTools, "[]"),
	"function_call": no(noTools, `"none"`, `"auto"`), "web_search_options": no(noTools),
	"reasoning_effort": {why: "only `none` has an effect without a variable of the template"},
	"verbosity":        {use: inert},
	"thinking":         no("want chat_template_kwargs"), "enable_thinking": no("want chat_template_kwargs"), "think": no("want chat_template_kwargs"),
	"chat_template": no(noTemplate), "documents": no(noTemplate, "[]"), "echo": no("the answer has the reply only", "false"),
}, common)

// no is a member that is refused unless its value is one of those.
func no(why string, neutral ...string) member { return member{use: unable, why: why, neutral: neutral} }

// with adds members, or tables of types.
func with[M ~map[string]V, V any](o, more M) M {
	maps.Copy(o, more)
	return o
}

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
