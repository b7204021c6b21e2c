"""Writes reference.json: what Jinja2 makes of the templates below, with the settings of Hugging Face's library."""

import datetime
import json
import os

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return jinja2.nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True))


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda f: datetime.datetime(2025, 7, 10, 12, 0, 0).strftime(f)

weather = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town's \u00fcber <b>sky</b>",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string", "enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "maximum": 7.5}},
            "required": ["town"],
        },
    },
}
call = {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": {"town": "Rome", "days": 1}}}
dialogues = {
    "one": [{"role": "user", "content": " Hi <|x|> there "}],
    "several": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "<think>\nadd\n</think>\n\n2", "reasoning_content": None},
        {"role": "user", "content": "And \"2 + 2\"?\n"},
    ],
    "tools": [
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "I need the tool."},
        {"role": "tool", "name": "weather", "tool_call_id": "call00001", "content": "{\"sky\": \"blue\"}"},
        {"role": "tool", "name": "weather", "tool_call_id": "call00002", "content": "second"},
    ],
    "wrong": [{"role": "assistant", "content": "first"}],
}

families = {
    "hermes": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not message.content.startswith('<tool_response>') %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" or message.role == "system" and not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- set content = message.content %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' }}
        {%- if loop.index0 > ns.last_query_index and (loop.last or thought) %}
            {{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- content }}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '<tool_call>\\n{"name": "' ~ tool_call.name ~ '", "arguments": ' }}
            {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or messages[loop.index0 - 1].role != "tool" %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- message.content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != "tool" %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
""",
    "llama": """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{#- the system message is separate #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools is defined %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- for t in tools or [] %}
    {{- t | tojson(indent=4) }}
    {{- "\\n\\n" }}
{%- endfor %}
{{- system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- if user_messages | length == 0 %}{{- raise_exception("no message of the user") }}{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("Tool call IDs should be 9 long") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {{ message['content'] | trim }}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
""",
    "phi": """{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + \
message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + \
'|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}\
{% endif %}""",
}

# Single features. Each has the variables of "several" besides list, dict and text.
features = [
    "{{ 1 + 2 * 3 - 4 // 3 % 5 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 * 'ab' if false else 'ab' * 2 }} {{ 1e3 if 0 else 1.50 }}",
    "{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x', (2,)] ~ {'k': none} }}",
    "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' in text }} {{ 'zz' not in list }} {{ not 1 in [2] }}",
    "{{ missing }}|{{ missing is defined }}|{{ missing or 'x' }}|{{ missing | default('d') }}|{{ '' | default('d', true) }}|{{ dict.nothing is undefined }}",
    "{{ missing.member }}",
    "{{ list[1:] }} {{ list[::-1] }} {{ text[-3:] }} {{ text[:2] }} {{ list[5:1:-2] }} {{ list[-1] }} {{ text[0] }}",
    "{% for x in list if x != 'b' %}{{ loop.index }}/{{ loop.length }}{{ x }}{{ ',' if not loop.last }}{% else %}none{% endfor %}",
    "{% for x in [] %}{% else %}none{% endfor %}{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for x in list %}{% if x == 'b' %}{% continue %}{% endif %}{% if x == 'd' %}{% break %}{% endif %}{{ loop.previtem }}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in range(3) %}{% set x = x + i %}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}",
    "{% set n = namespace(a=1, b='z') %}{% for i in range(1, 10, 4) %}{% set n.a = n.a + i %}{% endfor %}{{ n.a }}{{ n.b }}",
    "{% set t %}  block {{ 1 }}\n{% endset %}[{{ t }}]{% set a, b = 1, (2, 3) %}{{ a }}{{ b }}",
    "{% macro m(a, b='q', c=none) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, c=3, b='r') }}",
    "{{ text | trim | upper }}{{ ' x ' | trim }}{{ 'xxaxx' | trim('x') }}{{ 'hello wORLD' | title }}{{ 'hELLO' | capitalize }}{{ 'aXb'.lower() }}",
    "{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a.b.c'.rsplit('.', 1) }}{{ 'a b c'.split(' ', 1) }}{{ 'l1\\nl2'.splitlines() }}",
    "{{ 'aaa'.replace('a', 'b', 2) }}{{ 'abc'.find('c') }}{{ 'x'.startswith(('y', 'x')) }}{{ '--a-'.strip('-') }}{{ '--a'.lstrip('-') }}",
    "{{ list | join(', ') }}{{ list | first }}{{ list | last }}{{ list | length }}{{ dict | length }}{{ list | reverse | list }}",
    "{{ messages | map(attribute='role') | list }}{{ messages | map(attribute='x', default='n') | join }}{{ list | map('upper') | join }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('/') }}{{ messages | rejectattr('role', 'in', ['user']) | list | length }}",
    "{{ [1, 0, 2] | select | list }}{{ [1, 2, 3] | reject('odd') | list }}{{ [3, 1, 2] | sort }}{{ ['b', 'A'] | sort }}{{ [1, 1, 2] | unique | list }}",
    "{{ dict | dictsort }}{{ [1, 2] | sum }}{{ [1, 3] | max }}{{ '5' | int + 1 }}{{ 'x' | int }}{{ '1.5' | float }}{{ -3 | abs }}{{ 2.567 | round(1) }}",
    "{{ dict | tojson }}|{{ list | tojson(indent=2) }}|{{ text | tojson }}|{{ '\\u00fc<\\'\"\\n' | tojson }}|{{ {'b': 1.0, 'a': [], 'c': {}} | tojson(indent=1, sort_keys=true) }}",
    "{{ '\\u00fc\\U0001f600' | tojson(ensure_ascii=true) }}{{ [1, 2] | tojson(separators=(',', ':')) }}{{ 'a\\nb\\n\\nc' | indent(2) }}{{ 'a\\nb' | indent(2, true) }}",
    "  {% if true %}  \n   x\n  {% endif %}  \n y {#- c -#}  z\n{{- ' w ' -}}  \n v\n",
    "{% if false %}a{% elif list is string %}b{% elif dict is mapping and list is iterable and text is string %}c{% else %}d{% endif %}",
    "{{ 1 is number }}{{ 1 is integer }}{{ 1.0 is float }}{{ true is boolean }}{{ none is none }}{{ 4 is divisibleby 2 }}{{ 3 is odd }}{{ list is sequence }}",
    "{% raw %}{{ not rendered }} {% x %}{% endraw %}{{ '{{' }}",
    "{{ raise_exception('stop: ' ~ text) }}",
    "{{ strftime_now('%d %B %Y %H:%M %%') }}",
    "{% generation %}g{{ 1 }}{% endgeneration %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}",
    "{{ 'a' 'b' }}{{ dict['k'] }}{{ dict.k }}{{ dict.get('z', 'no') }}{{ dict.get('z') }}{{ 'k' in dict }}{{ dict.keys() | list }}{{ dict.values() | list }}",
    "{{ (1, 2) }}{{ () }}{{ [] }}{{ {} }}{{ 'it\\'s' | list | last }}{{ ['it\\'s', 'q\"', '\\n'] }}{{ 1e16 if false else 0.00001 }}{{ 10.0 * 1.5 }}",
    "{% filter upper %}a{{ 'b' }}{% endfilter %}{% set q | trim %} x {% endset %}[{{ q }}]",
    "{{ list[10] }}|{{ dict['none'] }}|{{ list[10] is defined }}",
    "{{ 1 / 0 }}",
    "{{ list + ['e'] }}{{ 'a' + 'b' }}{{ 1 + 1.5 }}{{ 3 - true }}",
    "{{ 'a' + 1 }}",
    "{{ loop }}{% for i in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{{ loop.revindex }}{{ loop.first }}{% endfor %}",
    "{{ 9007199254740993 == 9007199254740992 }} {{ 9007199254740993 > 9007199254740992 }}",
    # calls of blocks, arguments that are spread
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}a{{ x | default('q') }}{% endcall %}",
    "{% macro m(a) %}{{ caller(a, 2) }}{% endmacro %}{% call(x, y=3) m(1) %}{{ x }}{{ y }}{% endcall %}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{% call m(1) %}b{% endcall %}",
    "{% macro m(x) %}{{ caller is defined }}{% endmacro %}{{ m(1) }}{{ caller }}",
    "{% macro o() %}{% call i() %}{{ caller is defined }}{% endcall %}{% endmacro %}{% macro i() %}{{ caller() }}{% endmacro %}{{ o() }}",
    "{% call 1 %}{% endcall %}",
    "{% call text %}{% endcall %}",
    "{% macro m(a) %}{{ a }}{{ kwargs }}{% endmacro %}{{ m(1, a=2, z=3) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2) }}{{ m(*[1, 2], **{'x': 3}) }}",
    "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(b=1, *[2]) }}{{ m(*[2], b=1) }}{{ m(**{'b': 1, 'a': 0}) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(**{}, *[]) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(a=1, **{'a': 2}) }}",
    "{{ range(*[1, 4]) | list }}{{ 'x'.replace(*['x', 'y']) }}{{ 'ab' | replace(*['a', 'c']) }}",
    "{{ dict([('a', 1)], b=2) }}{{ dict(dict, **{'c': 3}) }}{{ dict(x=1, y=2) }}{{ dict() }}",
    "{% set n = namespace({'a': 1}, b=2) %}{{ n.a }}{{ n.b }}",
    # what is not known, in conditions
    "{% if false %}{{ 1 | nosuch }}{% else %}b{% endif %}{{ 1 | nosuch if false else 2 }}{{ (1 is nosuch) if false }}",
    "{% for m in messages %}{% if m.args is string %}{{ m.args | from_json }}{% else %}{{ m.role | tojson }}{% endif %}{% endfor %}",
    "{% if true %}{{ 1 | nosuch }}{% endif %}",
    "{{ 1 | nosuch }}",
    # functions and values
    "{% set j = joiner() %}{% for x in [1, 2, 3] %}{{ j() }}{{ x }}{% endfor %}{% set j = joiner('|') %}{{ j() }}{{ j() }}",
    "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set _ = c.reset() %}{{ c.current }}",
    "{{ dict | attr('k') }}|{{ dict | attr('items') is callable }}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{{ 3 | round }} {{ 3 | round(1) }} {{ 2.5 | round }} {{ 1.115 | round(2) }} {{ 1234 | round(-2) }} {{ 1234.5 | round(-2) }} {{ true | round }}",
    "{{ 3 | round(method='ceil') }} {{ 2.567 | round(1, 'floor') }} {{ 1e300 | round(2) }} {{ -0.5 | round }} {{ 2.675 | round(2) }}",
    "{{ '\u00df\ufb01' | upper }} {{ '\u00dfa' | capitalize }} {{ '\u00dfa' | title }} {{ '\u0391\u03a3 \u03a3\u0391\u03a3.' | lower }} {{ '\u0130I' | lower }}",
    "{{ \"it's (a) b-c d_e\" | title }} {{ \"it's (a) b-c d_e\".title() }} {{ '\u01c6x'.capitalize() }}",
    "{{ 'a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\r\nj\rk\n'.splitlines() }}{{ 'a\nb\r\n'.splitlines(true) }}{{ ''.splitlines() }}",
    "{{ true | abs }}{{ -2 | abs }}{{ {'a': 1} is lower }}{{ ('a', 1) is lower }}{{ {'a': 1}[:1] }}{{ (1, 2)[:1] }}{{ 'abc'[1:] }}{{ 4 is even }}{{ 1.5 is odd }}",
    "{{ '' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, blank=true) }}{{ nothing is callable }}",
    "{{ {} | abs }}",
    "{{ 1 | indent }}",
    "{{ nothing[1:] }}",
    "{{ [1] is even }}",
]

cases = []


def add(name, template, data):
    case = {"name": name, "data": data}
    if name.split(",")[0] in families:
        case["family"] = name.split(",")[0]
    else:
        case["template"] = template
    try:
        case["want"] = env.from_string(template).render(**data)
    except Exception as e:  # the text of the error is not compared
        case["fails"] = True
    cases.append(case)


for family, template in families.items():
    for name, messages in dialogues.items():
        for variant in ({}, {"tools": [weather]}, {"enable_thinking": False}):
            data = {"messages": messages, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "tools": None, **variant}
            add(f"{family}, {name}, {list(variant)}", template, data)
for i, template in enumerate(features):
    data = {"messages": dialogues["several"], "list": ["a", "b", "c", "d"], "dict": {"k": "v", "b": 1}, "text": " some text"}
    add(f"feature {i}", template, data)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.json"), "w") as f:
    json.dump({"families": families, "cases": cases}, f, indent=0, ensure_ascii=False)
    f.write("\n")
