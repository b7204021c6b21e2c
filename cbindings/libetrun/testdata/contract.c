/* Tries what a library must refuse, with typed errors and nothing written: contract DIGITS IMAGES
 * SCALARS. All memory is exactly as large as stated, so that the address sanitizer finds
 * accesses beyond it. */
#include <pthread.h>
#include <stdint.h>

#include "test.h"

enum { PIXELS = 64, CLASSES = 10, F32 = ETRUN_TYPE_FLOAT32 };

static const int64_t image[4] = {1, 1, 8, 8}, scores[2] = {1, CLASSES};
static const size_t image_bytes = PIXELS * sizeof(float), score_bytes = CLASSES * sizeof(float);
static etrun_program program;
static float *pixels;

static void *filled(size_t bytes)
{
	void *memory = malloc(bytes);
	WANT(memory != NULL);
	return memset(memory, 0x5a, bytes);
}

static void untouched(const void *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		WANT(((const unsigned char *)memory)[i] == 0x5a);
}

static void run_image(etrun_method m, const float *from, float *to)
{
	OK(etrun_set(m, 0, F32, image, 4, from, image_bytes, &error));
	OK(etrun_run(m, 0, &error));
	OK(etrun_get(m, 0, F32, scores, 2, to, score_bytes, &error));
}

/* library checks the functions without handles. */
static void library(void)
{
	WANT(etrun_abi() == ETRUN_ABI);
	WANT(strlen(etrun_version()) > 0);
	WANT(strcmp(etrun_class(ETRUN_BUSY), "ETRUN_BUSY") == 0 && strcmp(etrun_class(99), "unknown error class") == 0);
	WANT(etrun_backend_name(0) != NULL && etrun_backend_name(1000) == NULL);
	etrun_free(NULL);
}

static void open_refusals(const char *path, const char *other)
{
	etrun_program p = 7;
	etrun_options o = {0};
	const char *none[1] = {NULL};
	size_t bytes;
	char *data = load_file(path, &bytes);

	FAILS(ETRUN_FILE, "/no/such", "", etrun_open("/no/such/file.pte", NULL, &p, &error));
	WANT(p == 0);
	FAILS(ETRUN_MODEL, "", "", etrun_open(other, NULL, &p, &error));
	FAILS(ETRUN_INPUT, "path is NULL", "", etrun_open(NULL, NULL, &p, &error));
	FAILS(ETRUN_INPUT, "program is NULL", "", etrun_open(path, NULL, NULL, &error));
	FAILS(ETRUN_INPUT, "data is NULL", "", etrun_open_memory(NULL, 5, NULL, &p, &error));
	FAILS(ETRUN_INPUT, "data", "at most", etrun_open_memory(data, SIZE_MAX, NULL, &p, &error));
	FAILS(ETRUN_MODEL, "", "", etrun_open_memory(data, 0, NULL, &p, &error));
	FAILS(ETRUN_MODEL, "", "", etrun_open_memory(data, bytes / 2, NULL, &p, &error));

	o.data_files = none;
	o.n_data_files = 1;
	FAILS(ETRUN_INPUT, "options.data_files[0] is NULL", "", etrun_open(path, &o, &p, &error));
	o.n_data_files = SIZE_MAX;
	FAILS(ETRUN_INPUT, "options.data_files", "at most", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.threads = -1};
	FAILS(ETRUN_INPUT, "options.threads is -1", "", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.max_memory = -1};
	FAILS(ETRUN_INPUT, "options.max_memory is -1", "", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.lowering = "fast"};
	FAILS(ETRUN_INPUT, "options.lowering", "\"fast\"", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.xnnpack = "gpu"};
	FAILS(ETRUN_INPUT, "options.xnnpack", "\"gpu\"", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.delegates = "XnnpackBackend,CoreML"};
	FAILS(ETRUN_INPUT, "options.delegates", "CoreML", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.reserved = {0, 0, 1}};
	FAILS(ETRUN_INPUT, "options.reserved[2]", "", etrun_open(path, &o, &p, &error));
	o = (etrun_options){.max_memory = 100};
	FAILS(ETRUN_MEMORY, "", "", etrun_open(path, &o, &p, &error));
	WANT(p == 0);
	free(data);
}

/* options_have_effect opens a program with delegates without its backend, and on another engine. */
static void options_have_effect(const char *path)
{
	etrun_program p;
	etrun_method m = 7;
	etrun_options none = {.delegates = "", .threads = 1, .lowering = "off"}, go = {.xnnpack = "go", .threads = 1, .seed = 3, .map = 1};
	float *out = filled(score_bytes);
	OK(etrun_open(path, &none, &p, &error));
	FAILS(ETRUN_MISSING, "XnnpackBackend", "option delegates", etrun_load(p, NULL, &m, &error));
	WANT(m == 0);
	OK(etrun_close(p, &error));
	OK(etrun_open(path, &go, &p, &error));
	OK(etrun_load(p, NULL, &m, &error));
	run_image(m, pixels, out);
	OK(etrun_unload(m, &error));
	OK(etrun_close(p, &error));
	free(out);
}

static void handles(void)
{
	etrun_method m, closed;
	etrun_text t;
	etrun_info info;
	OK(etrun_load(program, "forward", &m, &error));
	OK(etrun_load(program, "", &closed, &error));
	OK(etrun_unload(closed, &error));
	FAILS(ETRUN_CLOSED, "method", "is closed", etrun_unload(closed, &error));
	FAILS(ETRUN_CLOSED, "method", "is closed", etrun_run(closed, 0, &error));
	FAILS(ETRUN_CLOSED, "method", "is closed", etrun_set(closed, 0, F32, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_CLOSED, "method", "is closed", etrun_get(closed, 0, F32, scores, 2, pixels, score_bytes, &error));
	FAILS(ETRUN_CLOSED, "handle of a method is 0", "", etrun_run(0, 0, &error));
	FAILS(ETRUN_CLOSED, "handle of a program is 0", "", etrun_load(0, NULL, &closed, &error));
	FAILS(ETRUN_CLOSED, "handle of a text is 0", "", etrun_text_next(0, NULL, &error));
	FAILS(ETRUN_CLOSED, "of a method", "want that of a program", etrun_load(m, NULL, &closed, &error));
	FAILS(ETRUN_CLOSED, "of a program", "want that of a method", etrun_run(program, 0, &error));
	FAILS(ETRUN_CLOSED, "not a handle", "", etrun_run(UINT64_MAX, 0, &error));
	FAILS(ETRUN_CLOSED, "not a handle", "", etrun_input(1u << 20 | 2, 0, &info, &error));
	FAILS(ETRUN_INPUT, "method is NULL", "", etrun_load(program, NULL, NULL, &error));
	FAILS(ETRUN_INPUT, "absent", "", etrun_load(program, "absent", &closed, &error));
	FAILS(ETRUN_INPUT, "absent", "", etrun_declared_counts(program, "absent", NULL, NULL, &error));
	FAILS(ETRUN_MISSING, "", "", etrun_text_open(program, NULL, &t, &error));
	WANT(closed == 0 && t == 0);
	WANT(etrun_run(0, 0, NULL) == ETRUN_CLOSED); /* no memory for the message */
	FAILS(ETRUN_INPUT, "timeout_ms", "-1", etrun_run(m, -1, &error));
	OK(etrun_unload(m, &error));
}

static void metadata(etrun_method m)
{
	const char *name = NULL;
	size_t inputs = 0, outputs = 0;
	char *warning = NULL;
	etrun_info info;
	OK(etrun_method_name(program, 0, &name, &error));
	WANT(name != NULL && strcmp(name, "forward") == 0);
	OK(etrun_method_name(program, 1, &name, &error));
	WANT(name == NULL);
	for (size_t i = 0; etrun_warning(program, i, &warning, NULL) == ETRUN_OK && warning != NULL; i++)
		etrun_free(warning);
	OK(etrun_counts(m, &inputs, &outputs, &error));
	WANT(inputs == 1 && outputs == 1);
	OK(etrun_counts(m, NULL, NULL, &error));
	OK(etrun_declared_counts(program, NULL, &inputs, &outputs, &error));
	WANT(inputs == 1 && outputs == 1);
	OK(etrun_declared_output(program, NULL, 0, &info, &error));
	WANT(info.kind == ETRUN_TENSOR && info.dtype == F32 && info.rank == 2 && info.shape[1] == CLASSES && info.dynamic == 0);
	OK(etrun_input(m, 0, &info, &error));
	WANT(info.kind == ETRUN_TENSOR && info.dtype == F32 && info.rank == 4 && info.bytes == image_bytes && info.name != NULL);
	OK(etrun_declared_input(program, "forward", 0, &info, &error));
	WANT(info.rank == 4 && memcmp(info.shape, image, sizeof image) == 0);
	FAILS(ETRUN_INPUT, "input 1", "has 1", etrun_input(m, 1, &info, &error));
	FAILS(ETRUN_INPUT, "output 1", "has 1", etrun_declared_output(program, NULL, 1, &info, &error));
	FAILS(ETRUN_INPUT, "info is NULL", "", etrun_input(m, 0, NULL, &error));
	FAILS(ETRUN_INPUT, "output 0", "", etrun_output(m, 0, &info, &error)); /* nothing has run */
}

/* inputs are refused in every way; the input keeps its value. */
static void inputs(etrun_method m)
{
	int64_t flat[1] = {64}, swapped[4] = {8, 8, 1, 1}, negative[4] = {1, 1, -8, -8}, none[4] = {0, 1, 8, 8};
	int64_t huge[4] = {INT64_MAX, INT64_MAX, 2, 2};
	int32_t *numbers = calloc(PIXELS, sizeof *numbers);
	float *before = filled(score_bytes), *after = filled(score_bytes);
	char *unaligned = malloc(image_bytes + 1);
	WANT(numbers != NULL && unaligned != NULL);
	run_image(m, pixels, before);
	FAILS(ETRUN_INPUT, "got int32 1x1x8x8", "want float32 1x1x8x8", etrun_set(m, 0, ETRUN_TYPE_INT32, image, 4, numbers, image_bytes, &error));
	FAILS(ETRUN_INPUT, "got 256 bytes for float64 1x1x8x8", "want float32 1x1x8x8, 256 bytes",
	      etrun_set(m, 0, ETRUN_TYPE_FLOAT64, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "dtype is 262", "", etrun_set(m, 0, 262, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "dtype is 18", "", etrun_set(m, 0, 18, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "dtype is -1", "", etrun_set(m, 0, -1, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "got float32 64", "1x1x8x8", etrun_set(m, 0, F32, flat, 1, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "8x8x1x1", "1x1x8x8", etrun_set(m, 0, F32, swapped, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "0x1x8x8", "1x1x8x8", etrun_set(m, 0, F32, none, 4, NULL, 0, &error));
	FAILS(ETRUN_INPUT, "scalar", "1x1x8x8", etrun_set(m, 0, F32, NULL, 0, pixels, 4, &error));
	FAILS(ETRUN_INPUT, "got 255 bytes", "want float32 1x1x8x8, 256 bytes", etrun_set(m, 0, F32, image, 4, pixels, 255, &error));
	FAILS(ETRUN_INPUT, "got 257 bytes", "want float32 1x1x8x8, 256 bytes", etrun_set(m, 0, F32, image, 4, pixels, 257, &error));
	FAILS(ETRUN_INPUT, "shape", "", etrun_set(m, 0, F32, huge, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "shape", "", etrun_set(m, 0, F32, negative, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "input 1", "has 1", etrun_set(m, 1, F32, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "input 18446744073709551615", "", etrun_set(m, SIZE_MAX, F32, image, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "data is NULL", "256", etrun_set(m, 0, F32, image, 4, NULL, image_bytes, &error));
	FAILS(ETRUN_INPUT, "data", "at most", etrun_set(m, 0, F32, image, 4, pixels, SIZE_MAX, &error));
	FAILS(ETRUN_INPUT, "shape is NULL", "rank 4", etrun_set(m, 0, F32, NULL, 4, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "rank is 17", "at most 16", etrun_set(m, 0, F32, image, 17, pixels, image_bytes, &error));
	FAILS(ETRUN_INPUT, "rank is", "at most 16", etrun_set(m, 0, F32, image, SIZE_MAX, pixels, image_bytes, &error));
	OK(etrun_run(m, 0, &error));
	OK(etrun_get(m, 0, F32, scores, 2, after, score_bytes, &error));
	WANT(memcmp(before, after, score_bytes) == 0);
	memcpy(unaligned + 1, pixels, image_bytes);
	OK(etrun_set(m, 0, F32, image, 4, unaligned + 1, image_bytes, &error));
	OK(etrun_run(m, 10000, &error));
	OK(etrun_get(m, 0, F32, scores, 2, after, score_bytes, &error));
	WANT(memcmp(before, after, score_bytes) == 0);
	free(numbers);
	free(before);
	free(after);
	free(unaligned);
}

/* outputs are refused in every way; nothing is written. */
static void outputs(etrun_method m)
{
	int64_t swapped[2] = {CLASSES, 1};
	float *out = filled(score_bytes);
	const void *data = NULL;
	size_t bytes = 0;
	FAILS(ETRUN_INPUT, "got int32 1x10", "want float32 1x10", etrun_get(m, 0, ETRUN_TYPE_INT32, scores, 2, out, score_bytes, &error));
	FAILS(ETRUN_INPUT, "got float64 1x10", "want float32 1x10", etrun_get(m, 0, ETRUN_TYPE_FLOAT64, scores, 2, out, score_bytes, &error));
	FAILS(ETRUN_INPUT, "got float32 10x1", "want float32 1x10", etrun_get(m, 0, F32, swapped, 2, out, score_bytes, &error));
	FAILS(ETRUN_INPUT, "scalar", "want float32 1x10", etrun_get(m, 0, F32, NULL, 0, out, 4, &error));
	FAILS(ETRUN_INPUT, "39 bytes", "want 40", etrun_get(m, 0, F32, scores, 2, out, 39, &error));
	FAILS(ETRUN_INPUT, "41 bytes", "want 40", etrun_get(m, 0, F32, scores, 2, out, 41, &error));
	FAILS(ETRUN_INPUT, "data is NULL", "", etrun_get(m, 0, F32, scores, 2, NULL, score_bytes, &error));
	FAILS(ETRUN_INPUT, "output 1", "has 1", etrun_get(m, 1, F32, scores, 2, out, score_bytes, &error));
	FAILS(ETRUN_INPUT, "got int32", "want float32", etrun_output_memory(m, 0, ETRUN_TYPE_INT32, &data, &bytes, &error));
	FAILS(ETRUN_INPUT, "data is NULL", "", etrun_output_memory(m, 0, F32, NULL, &bytes, &error));
	WANT(data == NULL && bytes == 0);
	untouched(out, score_bytes);
	OK(etrun_reset(m, &error));
	FAILS(ETRUN_INPUT, "output 0", "", etrun_get(m, 0, F32, scores, 2, out, score_bytes, &error));
	FAILS(ETRUN_INPUT, "input 0", "", etrun_run(m, 0, &error));
	untouched(out, score_bytes);
	free(out);
}

/* memory runs without copies, many times, and compares with copies. */
static void memory(etrun_method m)
{
	float *want = filled(score_bytes);
	void *in = NULL, *again = NULL;
	const void *out = NULL;
	size_t bytes = 0;
	int64_t flat[1] = {64}, huge[4] = {1, 1, 8, INT64_C(1) << 50};
	run_image(m, pixels + PIXELS, want);
	FAILS(ETRUN_INPUT, "got int32", "want float32", etrun_input_memory(m, 0, ETRUN_TYPE_INT32, image, 4, &in, &bytes, &error));
	FAILS(ETRUN_INPUT, "", "1x1x8x8", etrun_input_memory(m, 0, F32, flat, 1, &in, &bytes, &error));
	FAILS(ETRUN_INPUT, "", "1x1x8x8", etrun_input_memory(m, 0, F32, huge, 4, &in, &bytes, &error));
	FAILS(ETRUN_INPUT, "input 1", "", etrun_input_memory(m, 1, F32, image, 4, &in, &bytes, &error));
	FAILS(ETRUN_INPUT, "data is NULL", "", etrun_input_memory(m, 0, F32, image, 4, NULL, &bytes, &error));
	WANT(in == NULL);
	OK(etrun_input_memory(m, 0, F32, image, 4, &in, &bytes, &error));
	WANT(in != NULL && bytes == image_bytes && ((float *)in)[0] == 0);
	for (int i = 0; i < 100; i++) {
		memcpy(in, pixels + (i % 2) * PIXELS, image_bytes);
		OK(etrun_run(m, 0, &error));
		OK(etrun_output_memory(m, 0, F32, &out, &bytes, &error));
		WANT(bytes == score_bytes && (memcmp(out, want, bytes) == 0) == (i % 2 == 1));
	}
	OK(etrun_input_memory(m, 0, F32, image, 4, &again, NULL, &error));
	WANT(again == in);
	run_image(m, pixels, want); /* ends the use of the memory */
	memset(in, 0xff, image_bytes);
	OK(etrun_run(m, 0, &error));
	OK(etrun_output_memory(m, 0, F32, &out, NULL, &error));
	WANT(memcmp(out, want, score_bytes) == 0);
	OK(etrun_reset(m, &error));
	free(want);
}

/* scalars sets inputs that are numbers and bools, which the exporter fixed. */
static void scalars(const char *path)
{
	int64_t three = 3, one[1] = {1};
	double half = 0.5;
	int32_t three32 = 3;
	float half32 = 0.5f;
	unsigned char yes = 1;
	etrun_program p;
	etrun_method m;
	etrun_info info;
	void *data;
	OK(etrun_open(path, NULL, &p, &error));
	OK(etrun_load(p, NULL, &m, &error));
	OK(etrun_input(m, 1, &info, &error));
	WANT(info.kind == ETRUN_INT && info.dtype == ETRUN_TYPE_INT64 && info.rank == 0 && info.bytes == 8 && info.int_value == 3);
	OK(etrun_input(m, 2, &info, &error));
	WANT(info.kind == ETRUN_DOUBLE && info.dtype == ETRUN_TYPE_FLOAT64 && info.double_value == 0.5);
	OK(etrun_input(m, 3, &info, &error));
	WANT(info.kind == ETRUN_BOOL && info.dtype == ETRUN_TYPE_BOOL && info.bytes == 1 && info.int_value == 1);
	OK(etrun_set(m, 1, ETRUN_TYPE_INT64, NULL, 0, &three, 8, &error));
	OK(etrun_set(m, 2, ETRUN_TYPE_FLOAT64, NULL, 0, &half, 8, &error));
	OK(etrun_set(m, 3, ETRUN_TYPE_BOOL, NULL, 0, &yes, 1, &error));
	FAILS(ETRUN_INPUT, "got int32 scalar", "want int64 of rank 0", etrun_set(m, 1, ETRUN_TYPE_INT32, NULL, 0, &three32, 4, &error));
	FAILS(ETRUN_INPUT, "got float64 scalar", "want int64", etrun_set(m, 1, ETRUN_TYPE_FLOAT64, NULL, 0, &half, 8, &error));
	FAILS(ETRUN_INPUT, "got int64 1", "want int64 of rank 0", etrun_set(m, 1, ETRUN_TYPE_INT64, one, 1, &three, 8, &error));
	FAILS(ETRUN_INPUT, "got 4 bytes", "want int64 scalar, 8 bytes", etrun_set(m, 1, ETRUN_TYPE_INT64, NULL, 0, &three, 4, &error));
	FAILS(ETRUN_INPUT, "got float32 scalar", "want float64", etrun_set(m, 2, ETRUN_TYPE_FLOAT32, NULL, 0, &half32, 4, &error));
	FAILS(ETRUN_INPUT, "got uint8 scalar", "want bool", etrun_set(m, 3, ETRUN_TYPE_UINT8, NULL, 0, &yes, 1, &error));
	FAILS(ETRUN_INPUT, "no memory to write to", "etrun_set", etrun_input_memory(m, 1, ETRUN_TYPE_INT64, NULL, 0, &data, NULL, &error));
	three = 4;
	FAILS(ETRUN_INPUT, "input 1", "3", etrun_set(m, 1, ETRUN_TYPE_INT64, NULL, 0, &three, 8, &error));
	OK(etrun_unload(m, &error));
	OK(etrun_close(p, &error));
}

static etrun_method shared;
static int done[2], busy[2];

/* share_one uses the same method as another thread: a call succeeds or is refused as busy. */
static void *share_one(void *thread)
{
	int k = *(int *)thread;
	for (int i = 0; i < 500; i++) {
		char *error;
		int class_number = etrun_set(shared, 0, F32, image, 4, pixels, image_bytes, &error);
		if (class_number == ETRUN_OK)
			class_number = etrun_run(shared, 0, &error);
		if (class_number != ETRUN_OK && (class_number != ETRUN_BUSY || strstr(error, "another thread") == NULL))
			FAIL("two threads: %s: %s", etrun_class(class_number), error ? error : "no message");
		class_number == ETRUN_OK ? done[k]++ : busy[k]++;
		etrun_free(error);
	}
	return NULL;
}

/* own_one uses a method of its own. */
static void *own_one(void *want)
{
	etrun_method m;
	float *out = filled(score_bytes);
	OK(etrun_load(program, NULL, &m, &error));
	for (int i = 0; i < 50; i++) {
		run_image(m, pixels, out);
		WANT(memcmp(out, want, score_bytes) == 0);
	}
	OK(etrun_unload(m, &error));
	free(out);
	return NULL;
}

static void threads(etrun_method m)
{
	pthread_t thread[2];
	int number[2] = {0, 1};
	float *want = filled(score_bytes);
	OK(etrun_load(program, NULL, &shared, &error));
	for (int i = 0; i < 2; i++)
		WANT(pthread_create(&thread[i], NULL, share_one, &number[i]) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	WANT(done[0] + done[1] > 0 && done[0] + busy[0] == 500 && done[1] + busy[1] == 500);
	OK(etrun_unload(shared, &error));
	run_image(m, pixels, want);
	for (int i = 0; i < 2; i++)
		WANT(pthread_create(&thread[i], NULL, own_one, want) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	free(want);
}

int main(int argc, char **argv)
{
	etrun_method m;
	size_t bytes;
	char *data;
	float *out = filled(score_bytes);
	WANT(argc == 4);
	pixels = (float *)load_file(argv[2], &bytes);
	library();
	open_refusals(argv[1], argv[2]);
	options_have_effect(argv[1]);
	data = load_file(argv[1], &bytes);
	OK(etrun_open_memory(data, bytes, &(etrun_options){.threads = 1}, &program, &error));
	memset(data, 0, bytes);
	free(data);
	handles();
	OK(etrun_load(program, NULL, &m, &error));
	metadata(m);
	inputs(m);
	outputs(m);
	memory(m);
	scalars(argv[3]);
	threads(m);
	OK(etrun_close(program, &error));
	FAILS(ETRUN_CLOSED, "program", "is closed", etrun_close(program, &error));
	run_image(m, pixels, out); /* a method of a closed program */
	OK(etrun_unload(m, &error));
	free(out);
	free(pixels);
	return 0;
}
