/* What the tests in C share. A failure prints its line and ends the test. */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etrun.h>

#define FAIL(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define WANT(condition) ((condition) ? (void)0 : (void)FAIL("not so: %s", #condition))

/* OK requires success, and no message. */
#define OK(call) \
	do { \
		char *error = NULL; \
		int class_number = (call); \
		if (class_number != ETRUN_OK || error != NULL) \
			FAIL("%s: %s: %s", #call, etrun_class(class_number), error ? error : "no message"); \
	} while (0)

/* FAILS requires a class, and a message that contains two texts. */
#define FAILS(want, part, other, call) \
	do { \
		char *error = NULL; \
		int class_number = (call); \
		if (class_number != (want) || error == NULL || strstr(error, part) == NULL || strstr(error, other) == NULL) \
			FAIL("%s: %s: %s; want %s, with \"%s\" and \"%s\"", #call, etrun_class(class_number), error ? error : "no message", \
			     etrun_class(want), part, other); \
		etrun_free(error); \
	} while (0)

/* load_file returns the content of a file, which must be freed. */
static inline char *load_file(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *data;
	WANT(f != NULL && fseek(f, 0, SEEK_END) == 0);
	*bytes = (size_t)ftell(f);
	rewind(f);
	data = malloc(*bytes);
	WANT(data != NULL && fread(data, 1, *bytes, f) == *bytes);
	fclose(f);
	return data;
}

#endif
