/* Runs the digits model on raw images, as "etrun MODEL --input FILE" does, and writes the
 * outputs of all of them, then tries what a library must refuse. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etrun.h"

enum { PIXELS = 64, CLASSES = 10, IMAGES = 20, THREADS = 4 };

static _Thread_local char *error; /* of the last call of this thread */

static void check(int class, const char *what)
{
	if (class == ETRUN_OK)
		return;
	fprintf(stderr, "%s: class %d: %s\n", what, class, error ? error : "no text");
	exit(1);
}

static void refused(int class, int want, const char *what)
{
	if (class != want || error == NULL || *error == 0) {
		fprintf(stderr, "%s: class %d, want %d, with a text\n", what, class, want);
		exit(1);
	}
	etrun_free(error);
}

static const int64_t sizes[4] = {1, 1, 8, 8};
static float images[IMAGES][PIXELS], scores[IMAGES][CLASSES];
static etrun_program program;

static void *run_all(void *unused)
{
	etrun_method m;
	(void)unused;
	check(etrun_load(program, "forward", &m, &error), "load");
	for (int i = 0; i < IMAGES; i++) {
		float out[CLASSES];
		check(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images[i], sizeof images[i], &error), "set");
		check(etrun_run(m, 0, &error), "run");
		check(etrun_get(m, 0, out, sizeof out, &error), "get");
		if (memcmp(out, scores[i], sizeof out) != 0) {
			fprintf(stderr, "image %d: another thread got other scores\n", i);
			exit(1);
		}
	}
	check(etrun_unload(m, &error), "unload");
	return NULL;
}

/* refused_with is refused, and requires parts of the text. */
static void refused_with(int class, const char *got, const char *want, const char *what)
{
	if (class != ETRUN_INPUT || error == NULL || strstr(error, got) == NULL || strstr(error, want) == NULL) {
		fprintf(stderr, "%s: class %d: %s, which lacks \"%s\" or \"%s\"\n", what, class, error ? error : "no text", got, want);
		exit(1);
	}
	etrun_free(error);
}

/* typed_refusals gives an input elements of other types, sizes and lengths; it keeps its value. */
static void typed_refusals(etrun_method m)
{
	int64_t flat[1] = {64}, turned[4] = {8, 8, 1, 1}, huge[4] = {INT64_MAX, INT64_MAX, 2, 2}, negative[4] = {1, 1, -8, -8};
	int32_t numbers[PIXELS] = {1};
	float out[CLASSES];
	check(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images[1], sizeof images[1], &error), "set");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_INT32, sizes, 4, numbers, sizeof numbers, &error), "got int32 1x1x8x8", "want float32 1x1x8x8", "int32_t for float");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT64, sizes, 4, images, 512, &error), "got float64", "want float32", "double for float");
	refused_with(etrun_set_typed(m, 0, 262, sizes, 4, images, 256, &error), "262", "no element type", "a type that wraps");
	refused_with(etrun_set_typed(m, 0, 18, sizes, 4, images, 256, &error), "18", "no element type", "an unused type");
	refused_with(etrun_set_typed(m, 0, -1, sizes, 4, images, 256, &error), "-1", "no element type", "a negative type");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, flat, 1, images, 256, &error), "64", "1x1x8x8", "another rank");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, turned, 4, images, 256, &error), "8x8x1x1", "1x1x8x8", "other sizes");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, NULL, 0, images, 4, &error), "float32", "1x1x8x8", "a scalar");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images, 255, &error), "255", "256", "too few bytes");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images, 257, &error), "257", "256", "too many bytes");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, huge, 4, images, 256, &error), "input 0", "", "huge sizes");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, negative, 4, images, 256, &error), "input 0", "", "negative sizes");
	refused_with(etrun_set_typed(m, 1, ETRUN_TYPE_FLOAT32, sizes, 4, images, 256, &error), "input 1", "has 1", "no such input");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 4, NULL, 256, &error), "NULL", "", "no data");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, NULL, 4, images, 256, &error), "NULL", "", "no sizes");
	refused_with(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 17, images, 256, &error), "rank", "", "a rank beyond the limit");
	refused(etrun_set_typed(0, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images, 256, &error), ETRUN_CLOSED, "no handle");
	check(etrun_run(m, 0, &error), "run");
	check(etrun_get(m, 0, out, sizeof out, &error), "get");
	if (memcmp(out, scores[1], sizeof out) != 0) {
		fprintf(stderr, "a refused input changed the one before it\n");
		exit(1);
	}
}

static etrun_method shared;
static atomic_int done, busy;

/* share_one uses the same method as another thread: a call succeeds or is refused as busy. */
static void *share_one(void *unused)
{
	(void)unused;
	for (int i = 0; i < 500; i++) {
		char *text;
		int class = etrun_set_typed(shared, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images[i % IMAGES], sizeof images[0], &text);
		if (class == ETRUN_OK)
			class = etrun_run(shared, 0, &text);
		if (class != ETRUN_OK && class != ETRUN_BUSY) {
			fprintf(stderr, "two threads: class %d: %s\n", class, text ? text : "no text");
			exit(1);
		}
		atomic_fetch_add(class == ETRUN_OK ? &done : &busy, 1);
		etrun_free(text);
	}
	return NULL;
}

static void share(void)
{
	pthread_t threads[2];
	check(etrun_load(program, NULL, &shared, &error), "load");
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, share_one, NULL) != 0)
			exit(5);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (done == 0 || done + busy != 1000) {
		fprintf(stderr, "two threads: %d calls done, %d busy\n", done, busy);
		exit(1);
	}
	check(etrun_unload(shared, &error), "unload");
	refused(etrun_set_typed(shared, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images, 256, &error), ETRUN_CLOSED, "a closed method");
}

static void refusals(etrun_method m)
{
	etrun_program p;
	etrun_method other;
	etrun_info info;
	int64_t wrong[2] = {8, 8}, negative[4] = {1, 1, -8, -8};
	float small[1];
	refused(etrun_open("/no/such/file.pte", NULL, 0, 0, 0, &p, &error), ETRUN_FILE, "a file that is not there");
	refused(etrun_open("etrun.h", NULL, 0, 0, 0, &p, &error), ETRUN_MODEL, "a file that is no program");
	refused(etrun_open(NULL, NULL, 0, 0, 0, &p, &error), ETRUN_INPUT, "no path");
	const char *none[1] = {NULL};
	refused(etrun_open("x.pte", none, 1, 0, 0, &p, &error), ETRUN_INPUT, "a file without a name");
	refused(etrun_open("x.pte", none, (size_t)-1, 0, 0, &p, &error), ETRUN_INPUT, "more files than exist");
	refused(etrun_load(program, "gone", &other, &error), ETRUN_INPUT, "a method that is not there");
	refused(etrun_load(12345, NULL, &other, &error), ETRUN_CLOSED, "no handle");
	refused(etrun_load((etrun_program)m, NULL, &other, &error), ETRUN_CLOSED, "a handle of another kind");
	refused(etrun_set(m, 0, images, 7, NULL, 0, &error), ETRUN_INPUT, "too few bytes");
	refused(etrun_set(m, 0, images, 256, wrong, 2, &error), ETRUN_INPUT, "another shape");
	refused(etrun_set(m, 0, images, 256, negative, 4, &error), ETRUN_INPUT, "negative sizes");
	refused(etrun_set(m, 0, images, (size_t)-1, NULL, 0, &error), ETRUN_INPUT, "more bytes than exist");
	refused(etrun_set(m, 0, images, (size_t)1 << 60, NULL, 0, &error), ETRUN_INPUT, "more bytes than exist");
	refused(etrun_set(m, 0, images, 256, wrong, (size_t)-1, &error), ETRUN_INPUT, "a rank that is too large");
	refused(etrun_set_typed(m, 0, 6, wrong, 2, images, (size_t)-1, &error), ETRUN_INPUT, "more bytes than exist");
	refused(etrun_set_typed(m, 0, 6, wrong, (size_t)-1, images, 256, &error), ETRUN_INPUT, "a rank that is too large");
	refused(etrun_set(m, 9, images, 256, NULL, 0, &error), ETRUN_INPUT, "no such input");
	refused(etrun_set(m, 0, NULL, 256, NULL, 0, &error), ETRUN_INPUT, "no data");
	refused(etrun_get(m, 0, small, sizeof small, &error), ETRUN_INPUT, "a small buffer");
	refused(etrun_get(m, (size_t)-1, small, sizeof small, &error), ETRUN_INPUT, "no such output");
	refused(etrun_output(m, 1, &info, &error), ETRUN_INPUT, "no such output");
	refused(etrun_run(m, -1, &error), ETRUN_INPUT, "a negative time");
	if (etrun_load(0, NULL, &other, NULL) != ETRUN_CLOSED) {
		fprintf(stderr, "no place for the text\n");
		exit(1);
	}
	check(etrun_reset(m, &error), "reset");
	refused(etrun_run(m, 0, &error), ETRUN_INPUT, "no input after a reset");
}

int main(int argc, char **argv)
{
	char *name;
	etrun_method m;
	etrun_info info;
	size_t inputs, outputs;
	pthread_t threads[THREADS];
	FILE *in = argc == 4 ? fopen(argv[2], "rb") : NULL, *out = argc == 4 ? fopen(argv[3], "wb") : NULL;
	if (in == NULL || out == NULL || fread(images, sizeof images, 1, in) != 1)
		return 2;
	check(etrun_open(argv[1], NULL, 0, 1, 0, &program, &error), "open");
	check(etrun_method_name(program, 0, &name, &error), "name");
	check(etrun_load(program, name, &m, &error), "load");
	check(etrun_counts(m, &inputs, &outputs, &error), "counts");
	check(etrun_input(m, 0, &info, &error), "input");
	if (inputs != 1 || outputs != 1 || info.kind != ETRUN_TENSOR || info.dtype != ETRUN_TYPE_FLOAT32 || info.rank != 4 || info.bytes != sizeof images[0])
		return 3;
	for (int i = 0; i < IMAGES; i++) {
		check(etrun_set_typed(m, 0, ETRUN_TYPE_FLOAT32, sizes, 4, images[i], sizeof images[i], &error), "set");
		check(etrun_run(m, 10000, &error), "run");
		check(etrun_output(m, 0, &info, &error), "output");
		if (info.bytes != sizeof scores[i])
			return 4;
		check(etrun_get(m, 0, scores[i], sizeof scores[i], &error), "get");
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_all, NULL) != 0)
			return 5;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	typed_refusals(m);
	share();
	refusals(m);
	check(etrun_close(program, &error), "close");
	refused(etrun_close(program, &error), ETRUN_CLOSED, "closed twice");
	check(etrun_set(m, 0, images[0], sizeof images[0], NULL, 0, &error), "a method of a closed program");
	check(etrun_run(m, 0, &error), "a method of a closed program");
	check(etrun_unload(m, &error), "unload");
	refused(etrun_run(m, 0, &error), ETRUN_CLOSED, "a closed method");
	etrun_free(name);
	fwrite(scores, sizeof scores, 1, out);
	return fclose(out);
}
