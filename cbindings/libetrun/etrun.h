/* libetrun runs ExecuTorch programs (.pte). It is a shared library written in Go.
 *
 * Functions return ETRUN_OK or the class of a failure. Where error is not NULL a failure
 * stores its text there, which etrun_free frees; it is NULL otherwise. No function
 * ends the process or unwinds through its caller, whatever its arguments are, as long as
 * pointers point to what their descriptions say.
 *
 * Threads. A program may be used by any threads at once. A method may be used by any
 * thread, by one at a time: a call while another one uses the method gives ETRUN_BUSY and
 * changes nothing. A closed handle gives ETRUN_CLOSED; its number is not used again.
 *
 * Signals. The Go runtime in the library installs handlers for SIGSEGV, SIGBUS, SIGFPE,
 * SIGPROF, SIGURG and some others, on an alternate stack. What is not of Go code goes on to the
 * handlers that were there when the library was loaded. Handlers that are installed later
 * must have SA_ONSTACK, and should hand on signals of threads of the library. A process that
 * has loaded it must not fork without exec, and cannot unload it.
 */
#ifndef ETRUN_H
#define ETRUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of failure: the exit codes of the etrun command, and three more. */
enum {
	ETRUN_OK = 0,
	ETRUN_FAILURE = 1,   /* any other failure at run time */
	ETRUN_FILE = 2,      /* a file cannot be read */
	ETRUN_MODEL = 3,     /* invalid or unsafe model */
	ETRUN_MISSING = 4,   /* operator, backend or external data missing */
	ETRUN_INPUT = 5,     /* an argument, an input, or what is asked of an output does not fit */
	ETRUN_DEVICE = 7,    /* device failure */
	ETRUN_CANCELLED = 8, /* time limit reached */
	ETRUN_MEMORY = 9,    /* memory limit */
	ETRUN_BUSY = 10,     /* another thread uses the method */
	ETRUN_CLOSED = 11,   /* no such handle */
	ETRUN_PANIC = 12     /* a fault of an operator, a backend or the library */
};

/* Kinds of inputs and outputs. Numbers are one int64_t or double, bools one byte. */
enum { ETRUN_NONE = 0, ETRUN_TENSOR = 1, ETRUN_STRING = 2, ETRUN_DOUBLE = 3, ETRUN_INT = 4, ETRUN_BOOL = 5 };

#define ETRUN_MAX_RANK 16

/* Element types are ExecuTorch's ScalarType: 0 uint8, 1 int8, 2 int16, 3 int32, 4 int64,
 * 5 half, 6 float, 7 double, 11 bool, 15 bfloat16, and so on. */
typedef struct {
	int32_t kind;
	int32_t dtype;                 /* of a tensor */
	int32_t rank;
	int32_t dynamic;               /* sizes may vary, up to those here unless they have no bound */
	int64_t sizes[ETRUN_MAX_RANK];
	uint64_t bytes;                /* of all elements */
} etrun_info;

typedef uintptr_t etrun_program;
typedef uintptr_t etrun_method;

#ifndef ETRUN_TYPES_ONLY

/* etrun_version is the version of the library, valid until the process ends. */
const char *etrun_version(void);

/* etrun_free frees a text that the library returned. NULL is fine. */
void etrun_free(char *text);

/* etrun_open reads and verifies a .pte or .bpte file. data names n_data files (.ptd) with
 * external weights. threads is the thread budget, 0 for the processors that the process may use;
 * max_memory refuses what needs more bytes, 0 for the usual limits. */
int etrun_open(const char *path, const char *const *data, size_t n_data, int threads, int64_t max_memory,
               etrun_program *program, char **error);

/* etrun_close closes a program. What its methods share is freed with the last of them. */
int etrun_close(etrun_program program, char **error);

/* etrun_method_name is the name of method i, NULL behind the last one; etrun_free frees it. */
int etrun_method_name(etrun_program program, size_t i, char **name, char **error);

/* etrun_load makes a method ready to run. A NULL or empty name means "forward". */
int etrun_load(etrun_program program, const char *name, etrun_method *method, char **error);
int etrun_unload(etrun_method method, char **error);

/* etrun_counts is the number of inputs and outputs. */
int etrun_counts(etrun_method method, size_t *inputs, size_t *outputs, char **error);

/* etrun_input describes an input as declared, etrun_output an output of the last run. */
int etrun_input(etrun_method method, size_t i, etrun_info *info, char **error);
int etrun_output(etrun_method method, size_t i, etrun_info *info, char **error);

/* etrun_set copies an input: bytes of elements in logical order (the last dimension varies
 * fastest), little-endian. Without sizes (NULL, 0) they are the declared ones. An input keeps
 * its value until it is set again. */
int etrun_set(etrun_method method, size_t i, const void *data, size_t bytes, const int64_t *sizes, size_t rank, char **error);

/* etrun_run runs the method. It ends after timeout_ms between two instructions; 0 is for no limit. */
int etrun_run(etrun_method method, int64_t timeout_ms, char **error);

/* etrun_get copies an output of the last run, all of it, in logical order. bytes is the size
 * of buffer, at least that of the output. */
int etrun_get(etrun_method method, size_t i, void *buffer, size_t bytes, char **error);

/* etrun_reset makes a method as it was loaded: state, inputs and outputs. */
int etrun_reset(etrun_method method, char **error);

#endif
#ifdef __cplusplus
}
#endif
#endif
