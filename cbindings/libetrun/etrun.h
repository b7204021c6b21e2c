/* libetrun runs ExecuTorch programs (.pte). It is a shared library written in Go.
 *
 * Functions return ETRUN_OK or an error class. If error is not NULL, it is set to the error
 * message, which must be freed with etrun_free, or to NULL on success. No function terminates
 * the process or unwinds through its caller, provided that all pointers are valid.
 *
 * Threads. Any number of threads may use a program concurrently. A method may be used by any
 * thread, but only by one at a time: a call during another call returns ETRUN_BUSY and changes
 * nothing. A closed handle returns ETRUN_CLOSED; handles are not reused.
 *
 * Signals. The Go runtime in the library installs handlers for SIGSEGV, SIGBUS, SIGFPE,
 * SIGPROF, SIGURG and some others, on an alternate stack. Signals that do not belong to Go code
 * are forwarded to the handlers that were installed when the library was loaded. Handlers
 * installed later must use SA_ONSTACK, and should forward signals of the library's threads. After
 * loading the library a process must not fork without exec, and cannot unload it.
 */
#ifndef ETRUN_H
#define ETRUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Error classes: the exit codes of the etrun command, and three more. */
enum {
	ETRUN_OK = 0,
	ETRUN_FAILURE = 1,   /* any other failure at run time */
	ETRUN_FILE = 2,      /* a file cannot be read */
	ETRUN_MODEL = 3,     /* invalid or unsafe model */
	ETRUN_MISSING = 4,   /* operator, backend or external data missing */
	ETRUN_INPUT = 5,     /* an argument, an input, or a request for an output does not match */
	ETRUN_DEVICE = 7,    /* device failure */
	ETRUN_CANCELLED = 8, /* time limit reached */
	ETRUN_MEMORY = 9,    /* memory limit */
	ETRUN_BUSY = 10,     /* another thread is using the method */
	ETRUN_CLOSED = 11,   /* no such handle */
	ETRUN_PANIC = 12     /* an operator, a backend or the library panicked */
};

/* Kinds of inputs and outputs. A number is one int64_t or double, a bool one byte. */
enum { ETRUN_NONE = 0, ETRUN_TENSOR = 1, ETRUN_STRING = 2, ETRUN_DOUBLE = 3, ETRUN_INT = 4, ETRUN_BOOL = 5 };

#define ETRUN_MAX_RANK 16

/* Element types: the values of ExecuTorch's ScalarType, of which there are more. */
enum {
	ETRUN_TYPE_UINT8 = 0,
	ETRUN_TYPE_INT8 = 1,
	ETRUN_TYPE_INT16 = 2,
	ETRUN_TYPE_INT32 = 3,
	ETRUN_TYPE_INT64 = 4,
	ETRUN_TYPE_FLOAT16 = 5,
	ETRUN_TYPE_FLOAT32 = 6,
	ETRUN_TYPE_FLOAT64 = 7,
	ETRUN_TYPE_BOOL = 11,
	ETRUN_TYPE_BFLOAT16 = 15,
	ETRUN_TYPE_UINT16 = 27,
	ETRUN_TYPE_UINT32 = 28,
	ETRUN_TYPE_UINT64 = 29
};

typedef struct {
	int32_t kind;
	int32_t dtype;                 /* of a tensor: ETRUN_TYPE_… */
	int32_t rank;
	int32_t dynamic;               /* 1 if sizes may vary; sizes are upper bounds unless unbounded */
	int64_t sizes[ETRUN_MAX_RANK];
	uint64_t bytes;                /* of all elements */
} etrun_info;

typedef uintptr_t etrun_program;
typedef uintptr_t etrun_method;

#ifndef ETRUN_TYPES_ONLY

/* etrun_version returns the version of the library. The string is valid until the process ends. */
const char *etrun_version(void);

/* etrun_free frees a string returned by the library. NULL is allowed. */
void etrun_free(char *text);

/* etrun_open reads and verifies a .pte or .bpte file. data names n_data files (.ptd) with
 * external weights. threads is the number of threads, 0 for the processors available to the
 * process. max_memory is the memory limit in bytes, 0 for the default limits. */
int etrun_open(const char *path, const char *const *data, size_t n_data, int threads, int64_t max_memory,
               etrun_program *program, char **error);

/* etrun_close closes a program. Memory shared by its methods is freed with the last of them. */
int etrun_close(etrun_program program, char **error);

/* etrun_method_name returns the name of method i, NULL after the last one. Free it with etrun_free. */
int etrun_method_name(etrun_program program, size_t i, char **name, char **error);

/* etrun_load loads a method. A NULL or empty name means "forward". */
int etrun_load(etrun_program program, const char *name, etrun_method *method, char **error);
int etrun_unload(etrun_method method, char **error);

/* etrun_counts returns the numbers of inputs and outputs. */
int etrun_counts(etrun_method method, size_t *inputs, size_t *outputs, char **error);

/* etrun_input describes an input as declared, etrun_output an output of the last run. */
int etrun_input(etrun_method method, size_t i, etrun_info *info, char **error);
int etrun_output(etrun_method method, size_t i, etrun_info *info, char **error);

/* etrun_set_typed copies an input: elements of type dtype in logical order (the last dimension
 * varies fastest), little-endian. sizes are the rank sizes of data, bytes is its length. A type, sizes
 * or a length other than the input's are an error, ETRUN_INPUT, and leave the input as it was; the
 * message states what the input expects and what it was given. A scalar has rank 0: an int is
 * ETRUN_TYPE_INT64, a double ETRUN_TYPE_FLOAT64, a bool ETRUN_TYPE_BOOL. A string is ETRUN_TYPE_UINT8
 * of rank 1. An input keeps its value until it is set again. data is not used after the call. */
int etrun_set_typed(etrun_method method, size_t i, int32_t dtype, const int64_t *sizes, size_t rank, const void *data, size_t bytes,
                    char **error);

/* etrun_set is etrun_set_typed without a type: only the number of bytes is compared with the
 * input's. An array of int32_t for a float input of as many elements is accepted, and its bytes are
 * read as floats: prefer etrun_set_typed. If sizes is NULL and rank 0, the declared sizes are used. */
int etrun_set(etrun_method method, size_t i, const void *data, size_t bytes, const int64_t *sizes, size_t rank, char **error);

/* etrun_run runs the method. After timeout_ms it stops between two instructions; 0 means no limit. */
int etrun_run(etrun_method method, int64_t timeout_ms, char **error);

/* etrun_get copies a whole output of the last run in logical order. bytes is the size of buffer,
 * which must be at least that of the output. */
int etrun_get(etrun_method method, size_t i, void *buffer, size_t bytes, char **error);

/* etrun_reset returns a method to the state after etrun_load: state, inputs and outputs are reset. */
int etrun_reset(etrun_method method, char **error);

#endif
#ifdef __cplusplus
}
#endif
#endif
