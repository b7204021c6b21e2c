/* Generates texts: text MODEL TOKENIZER. */
#include <pthread.h>
#include <stdint.h>

#include "test.h"

static etrun_text text;

/* collect appends the tokens and the text of all pieces, and returns the reason of the end. */
static int collect(int32_t *ids, size_t *n, char *string)
{
	etrun_piece piece;
	*n = 0;
	string[0] = 0;
	do {
		OK(etrun_text_next(text, &piece, &error));
		WANT(strlen(piece.text) <= piece.bytes && piece.log_probs == NULL);
		for (size_t i = 0; i < piece.n_tokens && *n < 64; i++)
			ids[(*n)++] = piece.tokens[i];
		strncat(string, piece.text, 200);
	} while (piece.finish == ETRUN_FINISH_NONE);
	WANT(piece.generated_tokens == *n && piece.prompt_tokens > 0);
	return piece.finish;
}

static void *cancel(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++)
		OK(etrun_text_cancel(text, &error));
	return NULL;
}

/* tokens compares a text with the command's, and continues it. */
static void tokens(void)
{
	const int32_t prompt[3] = {1, 40, 50}, want[8] = {105, 5, 84, 203, 119, 112, 155, 141}, wrong[2] = {1, 1000000};
	int32_t ids[64];
	char string[4096];
	size_t n;
	etrun_piece piece;
	etrun_sampling s = {.max_tokens = 8}, nonsense = {.temperature = -1}, later = {.reserved = {1}}, logs = {.max_tokens = 2, .log_probs = 1};
	FAILS(ETRUN_INPUT, "no text is in progress", "", etrun_text_next(text, &piece, &error));
	for (int i = 0; i < 2; i++) {
		OK(etrun_text_tokens(text, prompt, 3, &s, &error));
		WANT(collect(ids, &n, string) == ETRUN_FINISH_LENGTH && n == 8 && memcmp(ids, want, sizeof want) == 0);
		FAILS(ETRUN_INPUT, "no text is in progress", "", etrun_text_next(text, &piece, &error));
	}
	OK(etrun_text_tokens(text, prompt, 3, &logs, &error));
	OK(etrun_text_next(text, &piece, &error));
	WANT(piece.n_tokens > 0 && piece.log_probs != NULL && piece.log_probs[0] < 0);
	FAILS(ETRUN_INPUT, "piece is NULL", "", etrun_text_next(text, NULL, &error));
	FAILS(ETRUN_INPUT, "1000000", "", etrun_text_tokens(text, wrong, 2, &s, &error));
	FAILS(ETRUN_INPUT, "tokens is NULL", "", etrun_text_tokens(text, NULL, 2, &s, &error));
	FAILS(ETRUN_INPUT, "at most", "", etrun_text_tokens(text, prompt, SIZE_MAX, &s, &error));
	FAILS(ETRUN_INPUT, "reserved[0]", "", etrun_text_tokens(text, prompt, 3, &later, &error));
	OK(etrun_text_tokens(text, prompt, 3, &nonsense, &error));
	FAILS(ETRUN_INPUT, "temperature", "-1", etrun_text_next(text, &piece, &error));
	OK(etrun_text_tokens(text, prompt, 3, NULL, &error)); /* left in progress */
	OK(etrun_text_next(text, &piece, &error));
}

/* prompts generates from strings and chats. */
static void prompts(void)
{
	int32_t ids[64], again[64];
	char string[4096], other[4096];
	size_t n, m;
	const char *stop[1] = {NULL};
	etrun_sampling s = {.max_tokens = 6, .temperature = 0.9, .seed = 5}, none = {.stop = stop, .n_stop = 1};
	etrun_message message = {"user", "hi", 2}, nobody = {NULL, "hi", 2};
	OK(etrun_text_prompt(text, "hello", 5, &s, &error));
	collect(ids, &n, string);
	OK(etrun_text_prompt(text, "hello", 5, &s, &error));
	collect(again, &m, other);
	WANT(n == m && n > 0 && memcmp(ids, again, n * sizeof *ids) == 0 && strcmp(string, other) == 0);
	FAILS(ETRUN_INPUT, "prompt is NULL", "", etrun_text_prompt(text, NULL, 5, &s, &error));
	FAILS(ETRUN_INPUT, "", "", etrun_text_prompt(text, "\xff\xfe", 2, &s, &error));
	FAILS(ETRUN_INPUT, "sampling.stop[0] is NULL", "", etrun_text_prompt(text, "hello", 5, &none, &error));
	OK(etrun_text_chat(text, &message, 1, &s, &error));
	collect(ids, &n, string);
	FAILS(ETRUN_INPUT, "messages is NULL", "", etrun_text_chat(text, NULL, 1, &s, &error));
	FAILS(ETRUN_INPUT, "role is NULL", "", etrun_text_chat(text, &nobody, 1, &s, &error));
}

static void refusals(etrun_program p, const char *tokenizer)
{
	etrun_text t = 7;
	const int32_t eos[1] = {-5};
	char junk[3] = "{}";
	etrun_text_options both = {.tokenizer = tokenizer, .tokenizer_data = {junk, 2}}, none = {.tokenizer = "/no/such"},
			   bad = {.tokenizer_data = {junk, 2}}, method = {.method = "absent"}, context = {.context = 1 << 30},
			   template = {.tokenizer = tokenizer, .chat_template = "absent"}, later = {.reserved = {1}}, end = {.eos = eos, .n_eos = 1};
	FAILS(ETRUN_INPUT, "both tokenizer and tokenizer_data", "", etrun_text_open(p, &both, &t, &error));
	FAILS(ETRUN_FILE, "/no/such", "", etrun_text_open(p, &none, &t, &error));
	FAILS(ETRUN_MISSING, "", "", etrun_text_open(p, &bad, &t, &error));
	FAILS(ETRUN_MISSING, "absent", "", etrun_text_open(p, &method, &t, &error));
	FAILS(ETRUN_INPUT, "context", "", etrun_text_open(p, &context, &t, &error));
	FAILS(ETRUN_INPUT, "absent", "", etrun_text_open(p, &template, &t, &error));
	FAILS(ETRUN_INPUT, "reserved[0]", "", etrun_text_open(p, &later, &t, &error));
	FAILS(ETRUN_INPUT, "-5", "", etrun_text_open(p, &end, &t, &error));
	FAILS(ETRUN_INPUT, "text is NULL", "", etrun_text_open(p, NULL, NULL, &error));
	WANT(t == 0);
}

int main(int argc, char **argv)
{
	etrun_program p;
	etrun_piece piece;
	pthread_t thread;
	size_t bytes;
	char *data;
	static const char chat[] = "{\"message\": \"{role}: {text} \"}";
	etrun_text_options options = {.chat_template = chat};
	const int32_t prompt[1] = {1};
	WANT(argc == 3);
	data = load_file(argv[2], &bytes);
	options.tokenizer_data = (etrun_bytes){data, bytes};
	OK(etrun_open(argv[1], NULL, &p, &error));
	refusals(p, argv[2]);
	OK(etrun_text_open(p, &options, &text, &error));
	free(data);
	OK(etrun_close(p, &error));
	tokens();
	prompts();
	OK(etrun_text_tokens(text, prompt, 1, NULL, &error));
	OK(etrun_text_cancel(text, &error));
	FAILS(ETRUN_CANCELLED, "", "", etrun_text_next(text, &piece, &error));
	WANT(pthread_create(&thread, NULL, cancel, NULL) == 0);
	for (int i = 0, class_number = ETRUN_OK; i < 100; i++) {
		OK(etrun_text_tokens(text, prompt, 1, NULL, &error));
		class_number = etrun_text_next(text, &piece, NULL);
		WANT(class_number == ETRUN_OK || class_number == ETRUN_CANCELLED);
	}
	pthread_join(thread, NULL);
	OK(etrun_text_close(text, &error));
	FAILS(ETRUN_CLOSED, "text", "is closed", etrun_text_close(text, &error));
	FAILS(ETRUN_CLOSED, "text", "is closed", etrun_text_next(text, &piece, &error));
	return 0;
}
