/* Calls that do several things at once: calls DIGITS IMAGES DUMP TEXT TOKENIZER ENCODER VOCABULARY. */
#include <pthread.h>
#include <stdint.h>

#include "test.h"

enum { F32 = ETRUN_TYPE_FLOAT32, THREADS = 4 };

static etrun_pool pool;
static float *pixels;
static float want[10];

static etrun_value tensor(const void *data, size_t bytes, int32_t rank, int64_t last)
{
	etrun_value v = {.dtype = F32, .rank = rank, .shape = {1, 1, 8, last}, .bytes = bytes};
	v.data = (void *)data;
	return v;
}

/* invoke compares etrun_invoke with the separate calls. */
static void invoke(etrun_program program)
{
	const int64_t image[4] = {1, 1, 8, 8}, classes[2] = {1, 10};
	etrun_method m;
	float scores[10] = {0};
	etrun_value in = tensor(pixels, 256, 4, 8), out = {.data = scores, .bytes = sizeof scores}, keep = {.dtype = -1};
	etrun_value two[2] = {in, in}, wide = tensor(pixels, 256, 4, 9), few = tensor(pixels, 252, 4, 8), none = {0};
	OK(etrun_load(program, NULL, &m, &error));
	FAILS(ETRUN_INPUT, "got nothing", "1x1x8x8", etrun_invoke(m, NULL, 0, &out, 1, 0, &error));
	OK(etrun_set(m, 0, F32, image, 4, pixels, 256, &error));
	OK(etrun_run(m, 0, &error));
	OK(etrun_get(m, 0, F32, classes, 2, want, sizeof want, &error));
	OK(etrun_invoke(m, &in, 1, &out, 1, 1000, &error));
	WANT(out.copied == 1 && out.kind == ETRUN_TENSOR && out.dtype == F32 && out.rank == 2 && out.shape[0] == 1 && out.shape[1] == 10);
	WANT(memcmp(scores, want, sizeof want) == 0);
	memset(scores, 0, sizeof scores);
	out.bytes = 39;
	OK(etrun_invoke(m, &keep, 1, &out, 1, 0, &error));
	WANT(out.copied == 0 && out.bytes == 40 && scores[0] == 0);
	OK(etrun_invoke(m, NULL, 0, &out, 1, 0, &error));
	WANT(out.copied == 1 && memcmp(scores, want, sizeof want) == 0);
	FAILS(ETRUN_INPUT, "got 2 inputs, the method has 1", "", etrun_invoke(m, two, 2, &out, 1, 0, &error));
	FAILS(ETRUN_INPUT, "got 2 outputs, the method has 1", "", etrun_invoke(m, &in, 1, two, 2, 0, &error));
	FAILS(ETRUN_INPUT, "inputs is NULL", "", etrun_invoke(m, NULL, 1, NULL, 0, 0, &error));
	FAILS(ETRUN_INPUT, "float32 1x1x8x9", "want float32 1x1x8x8", etrun_invoke(m, &wide, 1, &out, 1, 0, &error));
	FAILS(ETRUN_INPUT, "got 252 bytes", "want float32 1x1x8x8, 256 bytes", etrun_invoke(m, &few, 1, &out, 1, 0, &error));
	FAILS(ETRUN_INPUT, "got 0 bytes", "want float32 1x1x8x8", etrun_invoke(m, &none, 1, &out, 1, 0, &error));
	FAILS(ETRUN_INPUT, "timeout_ms", "-1", etrun_invoke(m, &in, 1, &out, 1, -1, &error));
	in.rank = -1;
	FAILS(ETRUN_INPUT, "rank", "at most", etrun_invoke(m, &in, 1, &out, 1, 0, &error));
	OK(etrun_unload(m, &error));
}

static void *work(void *unused)
{
	float scores[10];
	etrun_value in = tensor(pixels, 256, 4, 8), out;
	(void)unused;
	for (int i = 0; i < 20; i++) {
		out = (etrun_value){.data = scores, .bytes = sizeof scores};
		OK(etrun_pool_invoke(pool, &in, 1, &out, 1, 0, &error));
		WANT(out.copied == 1 && memcmp(scores, want, sizeof want) == 0);
	}
	return NULL;
}

/* pools runs a method on more threads than it has instances. */
static void pools(etrun_program program)
{
	pthread_t threads[THREADS];
	float scores[10];
	etrun_value out = {.data = scores, .bytes = sizeof scores}, keep = {.dtype = -1};
	etrun_pool absent = 7;
	FAILS(ETRUN_INPUT, "size is 0", "", etrun_pool_open(program, NULL, 0, &absent, &error));
	FAILS(ETRUN_INPUT, "absent", "", etrun_pool_open(program, "absent", 1, &absent, &error));
	FAILS(ETRUN_INPUT, "pool is NULL", "", etrun_pool_open(program, NULL, 1, NULL, &error));
	WANT(absent == 0);
	OK(etrun_pool_open(program, NULL, 2, &pool, &error));
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, work, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	FAILS(ETRUN_INPUT, "input 0", "", etrun_pool_invoke(pool, &keep, 1, &out, 1, 0, &error)); /* of no earlier call */
	OK(etrun_pool_close(pool, &error));
	FAILS(ETRUN_CLOSED, "pool", "is closed", etrun_pool_invoke(pool, NULL, 0, NULL, 0, 0, &error));
	FAILS(ETRUN_CLOSED, "pool", "is closed", etrun_pool_close(pool, &error));
}

/* events writes an ETDump of a run, and what a file tells of its tensors. */
static void events(const char *path, const char *dump)
{
	etrun_options with = {.etdump = 1, .debug_buffer = 1 << 20}, wrong = {.etdump = 2}, negative = {.debug_buffer = -1};
	etrun_program p;
	etrun_method m;
	etrun_info info;
	size_t bytes, names = 0;
	char values[4096];
	float scores[10];
	etrun_value in = tensor(pixels, 256, 4, 8), out = {.data = scores, .bytes = sizeof scores};
	FAILS(ETRUN_INPUT, "options.etdump", "", etrun_open(path, &wrong, &p, &error));
	FAILS(ETRUN_INPUT, "options.debug_buffer", "", etrun_open(path, &negative, &p, &error));
	OK(etrun_open(path, NULL, &p, &error));
	FAILS(ETRUN_INPUT, "option etdump", "", etrun_write_etdump(p, dump, NULL, &error));
	OK(etrun_declared_attribute(p, NULL, 0, &info, &error));
	WANT(info.kind == ETRUN_NONE && info.dtype == -1);
	OK(etrun_declared_input(p, NULL, 0, &info, &error));
	WANT(info.planned == 1);
	OK(etrun_close(p, &error));
	OK(etrun_open(path, &with, &p, &error));
	OK(etrun_load(p, NULL, &m, &error));
	OK(etrun_invoke(m, &in, 1, &out, 1, 0, &error));
	snprintf(values, sizeof values, "%s.values", dump);
	OK(etrun_write_etdump(p, dump, values, &error));
	free(load_file(dump, &bytes));
	WANT(bytes > 100);
	free(load_file(values, &bytes));
	WANT(bytes >= 40);
	FAILS(ETRUN_FILE, "/no/such", "", etrun_write_etdump(p, "/no/such/dump", NULL, &error));
	FAILS(ETRUN_INPUT, "path is NULL", "", etrun_write_etdump(p, NULL, NULL, &error));
	OK(etrun_unload(m, &error));
	OK(etrun_close(p, &error));
	while (etrun_operator_name(names) != NULL)
		names++;
	WANT(names > 100 && strlen(etrun_operator_name(0)) > 0 && strlen(etrun_operator_name(names - 1)) > 0);
}

/* collect returns the text of all pieces. */
static void collect(etrun_text text, char *string, size_t bytes)
{
	etrun_piece piece;
	string[0] = 0;
	do {
		OK(etrun_text_next(text, &piece, &error));
		strncat(string, piece.text, bytes - strlen(string) - 1);
	} while (piece.finish == ETRUN_FINISH_NONE);
}

/* texts generates by forms, in two texts of a model, and from a request in JSON. */
static void texts(const char *path, const char *tokenizer)
{
	static const char request[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"tools\": [{\"name\": \"f\"}]}";
	etrun_text_options options = {.tokenizer = tokenizer, .chat_template = "{% for t in tools or [] %}{{ t.name }}{% endfor %}{{ messages[0].content }}"};
	etrun_sampling plain = {.max_tokens = 6}, choice = {.max_tokens = 8, .grammar = "root ::= \"yes\" | \"no\""};
	etrun_sampling both = {.schema = "{}", .pattern = "a"}, bad = {.pattern = "("};
	etrun_program p;
	etrun_text text, fork;
	char first[512], second[512];
	OK(etrun_open(path, NULL, &p, &error));
	OK(etrun_text_open(p, &options, &text, &error));
	OK(etrun_text_prompt(text, "hello", 5, &choice, &error));
	collect(text, first, sizeof first);
	WANT(strcmp(first, "yes") == 0 || strcmp(first, "no") == 0);
	FAILS(ETRUN_INPUT, "at most one", "", etrun_text_prompt(text, "hello", 5, &both, &error));
	FAILS(ETRUN_INPUT, "sampling.pattern", "", etrun_text_prompt(text, "hello", 5, &bad, &error));
	OK(etrun_text_conversation(text, request, sizeof request - 1, &plain, &error));
	collect(text, first, sizeof first);
	FAILS(ETRUN_INPUT, "fork is NULL", "", etrun_text_fork(text, NULL, &error));
	OK(etrun_text_fork(text, &fork, &error));
	OK(etrun_text_close(text, &error));
	OK(etrun_text_prompt(fork, "fhi", 3, &plain, &error));
	collect(fork, second, sizeof second);
	WANT(strcmp(first, second) == 0);
	FAILS(ETRUN_INPUT, "json", "", etrun_text_conversation(fork, "[]", 2, &plain, &error));
	FAILS(ETRUN_INPUT, "json", "", etrun_text_conversation(fork, NULL, 0, &plain, &error));
	OK(etrun_text_close(fork, &error));
	OK(etrun_close(p, &error));
}

/* vectors embeds texts. */
static void vectors(const char *path, const char *vocabulary)
{
	etrun_embedder_options options = {.tokenizer = vocabulary, .pooling = "mean", .normalize = 1}, none = {0};
	etrun_bytes list[2] = {{"hello world", 11}, {"hello", 5}};
	etrun_program p;
	etrun_embedder e;
	size_t length = 0;
	float *to, sum = 0;
	OK(etrun_open(path, NULL, &p, &error));
	FAILS(ETRUN_INPUT, "needs tokenizer", "", etrun_embedder_open(p, &none, &e, NULL, &error));
	OK(etrun_embedder_open(p, &options, &e, &length, &error));
	to = malloc(2 * length * sizeof *to);
	WANT(length > 0 && to != NULL);
	OK(etrun_embed(e, list, 2, to, 2 * length * sizeof *to, &error));
	for (size_t i = 0; i < length; i++)
		sum += to[length + i] * to[length + i];
	WANT(sum > 0.999 && sum < 1.001);
	FAILS(ETRUN_INPUT, "vectors: got memory of 4 bytes", "", etrun_embed(e, list, 2, to, 4, &error));
	OK(etrun_embedder_close(e, &error));
	FAILS(ETRUN_CLOSED, "embedder", "is closed", etrun_embed(e, list, 2, to, 4, &error));
	free(to);
	OK(etrun_close(p, &error));
}

/* recordings transcribes a recording. */
static void recordings(const char *path, const char *files, const char *sound)
{
	etrun_speech_options options = {.files = files, .instances = 2};
	etrun_transcription english = {.language = "en", .max_tokens = 5}, hot = {.temperature = 9};
	static char content[200000];
	FILE *f = fopen(sound, "rb");
	etrun_bytes file = {content, 0}, none = {"RIFF", 4};
	etrun_program p;
	etrun_speech s;
	char *json = NULL;
	WANT(f != NULL);
	file.bytes = fread(content, 1, sizeof content, f);
	fclose(f);
	OK(etrun_open(path, NULL, &p, &error));
	FAILS(ETRUN_INPUT, "tokenizer", "", etrun_speech_open(p, NULL, &s, &error));
	OK(etrun_speech_open(p, &options, &s, &error));
	OK(etrun_transcribe(s, &file, &english, &json, &error));
	WANT(strncmp(json, "{\"text\":\"", 9) == 0 && strstr(json, "\"language\":\"en\"") != NULL);
	etrun_free(json);
	FAILS(ETRUN_INPUT, "temperature 9", "", etrun_transcribe(s, &file, &hot, &json, &error));
	WANT(json == NULL);
	FAILS(ETRUN_INPUT, "want a WAVE or FLAC file", "", etrun_transcribe(s, &none, NULL, &json, &error));
	OK(etrun_speech_close(s, &error));
	FAILS(ETRUN_CLOSED, "model of speech", "is closed", etrun_transcribe(s, &file, NULL, &json, &error));
	OK(etrun_close(p, &error));
}

/* seeing generates texts about a picture. */
static void seeing(const char *path, const char *tokenizer, const char *picture)
{
	static char content[100000];
	const etrun_message question = {.role = "user", .content = "<image>What is it?", .content_bytes = 18};
	const char *alone = "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}]}";
	etrun_text_options options = {.tokenizer = tokenizer};
	etrun_sampling s = {.max_tokens = 1};
	etrun_medium media[2] = {{.kind = ETRUN_PICTURE}, {.kind = ETRUN_PICTURE}}, other = {.kind = 3}, sound = {.kind = ETRUN_SOUND};
	etrun_program p;
	etrun_text t;
	etrun_piece piece;
	FILE *f = fopen(picture, "rb");
	size_t n;
	WANT(f != NULL);
	n = fread(content, 1, sizeof content, f);
	fclose(f);
	media[0].file.data = media[1].file.data = sound.file.data = content;
	media[0].file.bytes = media[1].file.bytes = sound.file.bytes = n;
	OK(etrun_open(path, NULL, &p, &error));
	OK(etrun_text_open(p, &options, &t, &error));
	OK(etrun_text_media(t, media, 2, &error));
	memset(content, 0, sizeof content); /* it was copied */
	OK(etrun_text_chat(t, &question, 1, &s, &error));
	do
		OK(etrun_text_next(t, &piece, &error));
	while (piece.finish == ETRUN_FINISH_NONE);
	WANT(piece.prompt_tokens > 32);
	FAILS(ETRUN_INPUT, "picture", "", etrun_text_media(t, media, 1, &error));
	FAILS(ETRUN_INPUT, "no encoder", "sound", etrun_text_media(t, &sound, 1, &error));
	FAILS(ETRUN_INPUT, "media[0]: kind 3", "", etrun_text_media(t, &other, 1, &error));
	FAILS(ETRUN_INPUT, "media is NULL", "", etrun_text_media(t, NULL, 1, &error));
	f = fopen(picture, "rb");
	n = fread(content, 1, sizeof content, f);
	fclose(f);
	OK(etrun_text_media(t, media, 1, &error));
	FAILS(ETRUN_INPUT, "tokens with media", "", etrun_text_tokens(t, (int32_t[]){1}, 1, &s, &error));
	FAILS(ETRUN_INPUT, "no message of the user", "", etrun_text_conversation(t, alone, strlen(alone), &s, &error));
	OK(etrun_text_prompt(t, "a", 1, &s, &error));
	do
		OK(etrun_text_next(t, &piece, &error));
	while (piece.finish == ETRUN_FINISH_NONE);
	WANT(piece.prompt_tokens > 16);
	OK(etrun_text_close(t, &error));
	OK(etrun_close(p, &error));
}

int main(int argc, char **argv)
{
	etrun_program program;
	size_t bytes;
	WANT(argc == 14);
	pixels = (float *)load_file(argv[2], &bytes);
	OK(etrun_open(argv[1], NULL, &program, &error));
	invoke(program);
	pools(program);
	OK(etrun_close(program, &error));
	events(argv[1], argv[3]);
	texts(argv[4], argv[5]);
	vectors(argv[6], argv[7]);
	recordings(argv[8], argv[9], argv[10]);
	seeing(argv[11], argv[12], argv[13]);
	free(pixels);
	return 0;
}
