/* Runs the digits model on raw images, as "etrun MODEL --input FILE" does, prints the digits and
 * writes all scores: digits MODEL IMAGES OUT. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <etrun.h>

static void check(int class_number, char **error, const char *what)
{
	if (class_number == ETRUN_OK)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, etrun_class(class_number), *error);
	etrun_free(*error);
	exit(1);
}

static FILE *open_file(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);
	if (f == NULL) {
		perror(path);
		exit(2);
	}
	return f;
}

static int largest(const float *scores, int n)
{
	int best = 0;
	for (int i = 1; i < n; i++)
		if (scores[i] > scores[best])
			best = i;
	return best;
}

int main(int argc, char **argv)
{
	const int64_t image[4] = {1, 1, 8, 8}, classes[2] = {1, 10};
	float pixels[64], scores[10];
	etrun_options options = {0};
	etrun_program program;
	etrun_method method;
	char *error;
	FILE *in, *out;

	if (argc != 4) {
		fprintf(stderr, "usage: %s MODEL IMAGES OUT: images of 8 by 8 float32 values\n", argv[0]);
		return 2;
	}
	in = open_file(argv[2], "rb");
	options.threads = 1;
	check(etrun_open(argv[1], &options, &program, &error), &error, "open");
	check(etrun_load(program, "forward", &method, &error), &error, "load");
	out = open_file(argv[3], "wb");
	while (fread(pixels, sizeof pixels, 1, in) == 1) {
		check(etrun_set(method, 0, ETRUN_TYPE_FLOAT32, image, 4, pixels, sizeof pixels, &error), &error, "set");
		check(etrun_run(method, 0, &error), &error, "run");
		check(etrun_get(method, 0, ETRUN_TYPE_FLOAT32, classes, 2, scores, sizeof scores, &error), &error, "get");
		fwrite(scores, sizeof scores, 1, out);
		printf("%d ", largest(scores, 10));
	}
	printf("\n");
	check(etrun_unload(method, &error), &error, "unload");
	check(etrun_close(program, &error), &error, "close");
	fclose(in);
	return fclose(out);
}
