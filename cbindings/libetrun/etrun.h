/* libetrun runs ExecuTorch programs (.pte). It is a shared library written in Go.
 *
 * Results. Functions return ETRUN_OK or an error class. If error is not NULL, it is set to the
 * message, which must be freed with etrun_free, or to NULL on success. A function that fails writes
 * nothing else, except handles, which are set to 0. No function terminates the process or unwinds
 * through its caller, provided that all pointers are valid.
 *
 * Handles. A handle is a number, never 0 and never reused. A handle that is 0, closed or of another
 * kind is an error, ETRUN_CLOSED. A program may be closed before its methods and texts.
 *
 * Threads. Any number of threads may use a program concurrently, each with its own methods and texts:
 * those of one program share its weights. A method or text may be used by any thread, but only by one
 * at a time: a call during another call returns ETRUN_BUSY and changes nothing. Threads that share a
 * method hold a lock of their own from etrun_set to etrun_get.
 *
 * Structures. Options that are all zeros are the defaults: etrun_options options = {0}. Fields named
 * reserved must be zero, and are set to zero in results.
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

/* The version of this interface. A library with another one does not fit this header: see etrun_abi. */
#define ETRUN_ABI 2

/* Error classes: the exit codes of the etrun command, and more. */
enum {
	ETRUN_OK = 0,
	ETRUN_FAILURE = 1,   /* any other failure at run time */
	ETRUN_FILE = 2,      /* a file cannot be read */
	ETRUN_MODEL = 3,     /* invalid or unsafe model, or tokenizer */
	ETRUN_MISSING = 4,   /* operator, backend or external data missing, or not supported */
	ETRUN_INPUT = 5,     /* an argument, an input, or a request for an output does not match */
	ETRUN_DEVICE = 7,    /* device failure */
	ETRUN_CANCELLED = 8, /* time limit reached, or cancelled */
	ETRUN_MEMORY = 9,    /* memory limit */
	ETRUN_BUSY = 10,     /* another thread is using the method or text */
	ETRUN_CLOSED = 11,   /* the handle is 0, closed, or of another kind */
	ETRUN_PANIC = 12     /* an operator, a backend or the library panicked */
};

/* Kinds of inputs and outputs: ExecuTorch's tags. */
enum {
	ETRUN_NONE = 0,
	ETRUN_TENSOR = 1,
	ETRUN_STRING = 2,
	ETRUN_DOUBLE = 3,
	ETRUN_INT = 4,
	ETRUN_BOOL = 5,
	ETRUN_BOOL_LIST = 6,
	ETRUN_DOUBLE_LIST = 7,
	ETRUN_INT_LIST = 8
};

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
	ETRUN_TYPE_COMPLEX64 = 9,
	ETRUN_TYPE_COMPLEX128 = 10,
	ETRUN_TYPE_BOOL = 11,
	ETRUN_TYPE_BFLOAT16 = 15,
	ETRUN_TYPE_UINT16 = 27,
	ETRUN_TYPE_UINT32 = 28,
	ETRUN_TYPE_UINT64 = 29
};

typedef uint64_t etrun_program; /* an open file */
typedef uint64_t etrun_method;  /* a loaded instance of a method, with its own state */
typedef uint64_t etrun_pool;    /* instances of a method for several threads */
typedef uint64_t etrun_text;    /* a text of a language model, with its own cache */
typedef uint64_t etrun_embedder; /* a model that computes vectors of texts */
typedef uint64_t etrun_speech;  /* a model that transcribes recordings */

typedef struct {
	const void *data;
	size_t bytes;
} etrun_bytes;

/* Options of a program. Strings that are NULL are the defaults. */
typedef struct {
	const char *const *data_files; /* paths of n_data_files files (.ptd) with external weights */
	size_t n_data_files;
	const etrun_bytes *data_bytes; /* the same from memory, which is copied */
	size_t n_data_bytes;
	int32_t threads;               /* 0: the processors available to the process */
	int32_t map;                   /* 1: map files instead of reading them; they must not change */
	int64_t max_memory;            /* limit in bytes, 0: the default limits */
	uint64_t seed;                 /* of operators that draw random numbers */
	const char *lowering;          /* optimizations at load: "auto" (default), "off", "rewrite", "all" */ 
	const char *xnnpack;           /* engine: "auto" (default), "native" (libXNNPACK), "go" */
	const char *xnnpack_library;   /* path of libXNNPACK or its folder */
	const char *weights_cache;     /* folder for packed weights and measurements, of this user only */
	const char *device;            /* of Ethos-U delegates: "auto" (default), "npu" (software), a path */
	const char *delegates;         /* IDs of the allowed delegates, separated by commas; NULL: all */
	const char *repair;            /* known faults of exporters: "auto" (default) repairs them, "off" */
	int32_t etdump;                /* 1: record the events of runs for etrun_write_etdump */
	int32_t reserved_1;
	int64_t debug_buffer;          /* bytes for the values of instructions, with etdump; lowering is then off */
	uint64_t reserved[6];
} etrun_options;

/* Description of an input or output. Its elements are little-endian and in logical order: the last
 * dimension varies fastest. Scalars have rank 0: an int is INT64, a double FLOAT64, a bool BOOL. A
 * string is UINT8 of rank 1, a list of ints INT64 of rank 1, and so on. */
typedef struct {
	int32_t kind;
	int32_t dtype;                  /* ETRUN_TYPE_…; -1 for ETRUN_NONE */
	int32_t rank;
	int32_t dynamic;                /* 0: the shape is fixed; 1: it is the largest one; 2: any sizes */
	int64_t shape[ETRUN_MAX_RANK];
	uint64_t bytes;                 /* of all elements */
	const char *name;               /* "" if the file has none; valid until the handle is closed */
	int64_t int_value;              /* of an input of kind INT or BOOL, as fixed by the exporter */
	double double_value;            /* of an input of kind DOUBLE, as fixed by the exporter */
	int32_t planned;                /* 1: the file has memory or contents for the tensor */
	int32_t reserved_1;
	uint64_t reserved[3];
} etrun_info;

/* An input or output of etrun_invoke. */
typedef struct {
	int32_t kind;                   /* of an output, set by the call: ETRUN_TENSOR… */
	int32_t dtype;                  /* of an input; -1: the input keeps its value, or is None if its kind is NONE */
	int32_t rank;
	int32_t copied;                 /* of an output, set by the call: 1: data has the elements */
	int64_t shape[ETRUN_MAX_RANK];
	void *data;                     /* elements of an input; memory for those of an output, or NULL */
	size_t bytes;                   /* of data; for an output, set by the call: of all elements */
} etrun_value;

/* Options of etrun_text_open. */
typedef struct {
	const char *tokenizer;      /* path of its file; NULL if data has it, or for tokens only */
	etrun_bytes tokenizer_data; /* the file's content, which is copied */
	const char *method;         /* from tokens to logits; NULL: "forward" */
	const char *chat_template;  /* name of a built-in template, or one in JSON; NULL: by the tokenizer */
	int32_t context;            /* maximum number of positions, 0: the program's */
	int32_t has_bos;            /* 1: bos is the token that begins texts, -1 for none; 0: the program's */
	int32_t bos;
	int32_t reserved_1;
	const int32_t *eos;         /* n_eos tokens that end texts; 0: those of program and tokenizer */
	size_t n_eos;
	int32_t batch;              /* texts of the model that decode at the same time; 0: the default */
	int32_t reserved_2;
	etrun_bytes processor;      /* content of preprocessor_config.json, for models that see; NULL: without */
	uint64_t reserved[5];
} etrun_text_options;

/* Kinds of etrun_medium. */
enum {
	ETRUN_PICTURE = 1, /* PNG, JPEG, GIF or WebP */
	ETRUN_SOUND = 2    /* WAVE or FLAC */
};

/* A picture or a sound of a prompt. */
typedef struct {
	int32_t kind;
	int32_t reserved;
	etrun_bytes file; /* its content, which is copied */
} etrun_medium;

/* Options of one generated text: zeros select the most likely token up to the end of the text. */
typedef struct {
	double temperature;         /* divides the logits; 0: the most likely token */
	double top_p, min_p;
	double repetition_penalty, presence_penalty, frequency_penalty;
	uint64_t seed;
	int32_t top_k;
	int32_t penalty_window;
	int32_t max_tokens;         /* 0: up to the end of the context */
	int32_t ignore_eos;
	int32_t lookup;             /* maximum length of a draft from earlier parts of the text */
	int32_t log_probs;          /* 1: pieces have log_probs */
	const char *const *stop;    /* n_stop strings: the text ends before the first of them */
	size_t n_stop;
	const char *schema;         /* the text is JSON by this JSON schema ("{}": any JSON) */
	const char *grammar;        /* the text is one of this GBNF grammar */
	const char *pattern;        /* the text matches this regular expression; at most one of the three */
	uint64_t reserved[5];
} etrun_sampling;

/* Options of etrun_embedder_open. */
typedef struct {
	const char *tokenizer;      /* path of its file; NULL if data has it */
	etrun_bytes tokenizer_data;
	const char *method;         /* NULL: "forward" */
	const char *pooling;        /* "mean", "cls", "last"; NULL: the program has one vector of each text */
	const char *prompt;         /* precedes each text */
	int32_t context;            /* maximum number of tokens, 0: the program's */
	int32_t normalize;          /* 1: divide vectors by their length */
	uint64_t reserved[8];
} etrun_embedder_options;

/* Options of etrun_speech_open. */
typedef struct {
	const char *files;          /* path of the folder with the files of the model, or of its tokenizer; NULL: it needs none */
	int32_t instances;          /* recordings that are computed at the same time, 0: 1 */
	int32_t reserved_1;
	uint64_t reserved[8];
} etrun_speech_options;

/* Options of etrun_transcribe; zeros: the language and the text that are most likely. */
typedef struct {
	const char *language;       /* code of ISO 639, such as "en"; NULL: found by the model */
	const char *prompt;         /* precedes the recording */
	double temperature;
	double threshold;           /* of voice detectors and speakers, 0: 0.5 */
	uint64_t seed;
	int32_t translate;          /* 1: to English */
	int32_t times;              /* 1: Whisper writes the times of segments */
	int32_t fallback;           /* 1: Whisper repeats what is improbable with higher temperatures */
	int32_t max_tokens;         /* of 30 seconds, 0: what the model has room for */
	uint64_t reserved[8];
} etrun_transcription;

/* A message of a chat. content has content_bytes bytes of UTF-8. */
typedef struct {
	const char *role;           /* such as "system", "user" and "assistant" */
	const char *content;
	size_t content_bytes;
} etrun_message;

/* Reasons why a text ended. */
enum { ETRUN_FINISH_NONE = 0, ETRUN_FINISH_STOP = 1, ETRUN_FINISH_LENGTH = 2, ETRUN_FINISH_CONTEXT = 3 };

/* A part of a generated text. Its memory is valid until the next call with the text's handle. */
typedef struct {
	const char *text;           /* bytes of UTF-8 and a NUL, which does not count */
	size_t bytes;
	const int32_t *tokens;
	const float *log_probs;     /* n_tokens natural logarithms; NULL without the option */
	size_t n_tokens;
	int32_t finish;             /* ETRUN_FINISH_…: not 0 in the last piece */
	int32_t reserved_1;
	uint64_t prompt_tokens, reused_tokens, generated_tokens; /* of the last piece, as the times are */
	double prefill_seconds, decode_seconds;
	uint64_t reserved[4];
} etrun_piece;

#ifndef ETRUN_TYPES_ONLY

/* ---- Library ---- */

/* etrun_abi returns the ETRUN_ABI of the library. Programs that open it at run time compare it. */
int32_t etrun_abi(void);

/* etrun_version returns the version of the library, etrun_class the name of an error class, such as
 * "ETRUN_INPUT". The strings are valid until the process ends. */
const char *etrun_version(void);
const char *etrun_class(int class_number);

/* etrun_free frees a message or another string that a function returns as char **. NULL is allowed. */
void etrun_free(char *string);

/* ---- Programs ---- */

/* etrun_open reads and verifies a .pte or .bpte file, etrun_open_memory the content of one, which is
 * copied. options may be NULL. Neither it nor what it points to is used after the call. */
int etrun_open(const char *path, const etrun_options *options, etrun_program *program, char **error);
int etrun_open_memory(const void *data, size_t bytes, const etrun_options *options, etrun_program *program, char **error);

/* etrun_close closes a program. Memory shared by its methods is freed with the last of them. */
int etrun_close(etrun_program program, char **error);

/* etrun_method_name returns the name of method i, NULL after the last one. It is valid until the
 * program is closed. */
int etrun_method_name(etrun_program program, size_t i, const char **name, char **error);

/* The numbers of inputs and outputs of a method, and their declarations, without loading it. A NULL
 * or empty name means "forward". */
int etrun_declared_counts(etrun_program program, const char *method, size_t *inputs, size_t *outputs, char **error);
int etrun_declared_input(etrun_program program, const char *method, size_t i, etrun_info *info, char **error);
int etrun_declared_output(etrun_program program, const char *method, size_t i, etrun_info *info, char **error);

/* etrun_declared_attribute describes attribute i: a tensor of the method that has a name, such as a
 * parameter or buffer. info->kind is ETRUN_NONE after the last one. */
int etrun_declared_attribute(etrun_program program, const char *method, size_t i, etrun_info *info, char **error);

/* etrun_backend_name returns the ID of backend i of the library, NULL after the last one. The string
 * is valid until the process ends. */
const char *etrun_backend_name(size_t i);

/* etrun_operator_name does the same for the operators, such as "aten::add.out". */
const char *etrun_operator_name(size_t i);

/* etrun_warning returns warning i: what the program does not use, or runs slower than it could. It is
 * NULL after the last one. Loading a method may add warnings. Free it with etrun_free. */
int etrun_warning(etrun_program program, size_t i, char **warning, char **error);

/* etrun_write_etdump writes an ETDump of all runs to a file, and the values of their instructions to
 * another, for ExecuTorch's Inspector. values_path may be NULL; nothing is written to it without
 * options.debug_buffer. It is an error, ETRUN_INPUT, without options.etdump. */
int etrun_write_etdump(etrun_program program, const char *path, const char *values_path, char **error);

/* ---- Methods ---- */

/* etrun_load loads a method. A NULL or empty name means "forward". */
int etrun_load(etrun_program program, const char *name, etrun_method *method, char **error);

/* etrun_unload waits for a call in progress, then frees the method. */
int etrun_unload(etrun_method method, char **error);

/* etrun_counts returns the numbers of inputs and outputs. Either pointer may be NULL. */
int etrun_counts(etrun_method method, size_t *inputs, size_t *outputs, char **error);

/* etrun_input describes an input as declared, etrun_output an output of the last run. */
int etrun_input(etrun_method method, size_t i, etrun_info *info, char **error);
int etrun_output(etrun_method method, size_t i, etrun_info *info, char **error);

/* etrun_set copies the elements of an input. dtype and shape must be those of the input, and bytes
 * the size of all elements; anything else is an error, ETRUN_INPUT, which states what data is and
 * what the input is, and the input keeps its value. An input keeps its value until it is set again.
 * data may be unaligned, and is not used after the call. For rank 0 shape may be NULL. */
int etrun_set(etrun_method method, size_t i, int32_t dtype, const int64_t *shape, size_t rank, const void *data, size_t bytes,
              char **error);

/* etrun_input_memory returns memory that the method reads input i from, without a copy: the caller
 * writes its elements there before each run. The first elements are zeros. The memory belongs to the
 * method. It may be written between runs, never during one, until the input is set with etrun_set,
 * its memory is requested again, or the method is reset or unloaded; after that it must not be used.
 * If the program itself updates the input, a run changes the elements. An input that has no such
 * memory is an error, ETRUN_INPUT: scalars, inputs of unlimited size, those that are state, and those
 * whose elements are not in logical order. */
int etrun_input_memory(etrun_method method, size_t i, int32_t dtype, const int64_t *shape, size_t rank, void **data, size_t *bytes,
                       char **error);

/* etrun_run runs the method. After timeout_ms it stops between two instructions; 0 means no limit. */
int etrun_run(etrun_method method, int64_t timeout_ms, char **error);

/* etrun_get copies an output of the last run. dtype and shape must be those of the output, see
 * etrun_output, and bytes the size of all elements; if not, nothing is written to data. */
int etrun_get(etrun_method method, size_t i, int32_t dtype, const int64_t *shape, size_t rank, void *data, size_t bytes,
              char **error);

/* etrun_output_memory returns the memory of an output of the last run, without a copy unless its
 * elements are in another order than the logical one. It must not be written. It is valid until the
 * next call of etrun_run, etrun_set, etrun_input_memory, etrun_reset or etrun_unload for the method. */
int etrun_output_memory(etrun_method method, size_t i, int32_t dtype, const void **data, size_t *bytes, char **error);

/* etrun_invoke does in one call what etrun_set of all inputs, etrun_run, etrun_output and etrun_get of
 * outputs do. n_inputs is the number of the method's inputs, or 0 to keep all their values; n_outputs is
 * at most the number of its outputs. The elements of an output whose data is NULL or too small are not
 * copied; etrun_get copies them. A string of kind STRING is UINT8 of rank 1, as elsewhere. */
int etrun_invoke(etrun_method method, const etrun_value *inputs, size_t n_inputs, etrun_value *outputs, size_t n_outputs,
                 int64_t timeout_ms, char **error);

/* etrun_pool_open makes a pool of up to size instances of a method, loaded on demand. They share the
 * weights. Any number of threads may call etrun_pool_invoke: a call waits for an instance, which then
 * is in its initial state, without inputs and state of earlier calls, so all inputs that are tensors
 * must have data. It is otherwise as etrun_invoke; elements of outputs that are not copied are lost.
 * The program must stay open. etrun_pool_close waits for the calls. */
int etrun_pool_open(etrun_program program, const char *method, int32_t size, etrun_pool *pool, char **error);
int etrun_pool_invoke(etrun_pool pool, const etrun_value *inputs, size_t n_inputs, etrun_value *outputs, size_t n_outputs,
                      int64_t timeout_ms, char **error);
int etrun_pool_close(etrun_pool pool, char **error);

/* etrun_reset returns a method to the state after etrun_load: state, inputs and outputs are reset. */
int etrun_reset(etrun_method method, char **error);

/* ---- Texts of language models ---- */

/* etrun_text_open opens a text of a program with a method from tokens to logits. options may be
 * NULL, for tokens instead of strings. The program may be closed afterwards. */
int etrun_text_open(etrun_program program, const etrun_text_options *options, etrun_text *text, char **error);

/* etrun_text_fork opens a further text of the same model, with a cache of its own that has what was
 * computed for this one. It ends the text in progress, and the program must be open. Texts of one
 * model that are generated by several threads decode together. */
int etrun_text_fork(etrun_text text, etrun_text *fork, char **error);

/* etrun_text_close ends a text in progress and frees it. It waits for a call in progress. */
int etrun_text_close(etrun_text text, char **error);

/* These start the generation of a continuation: of a string, of tokens, or of a chat. They end the one
 * before. The prompt is the complete text from its beginning; what it shares with the text of the last
 * call is not computed again. sampling may be NULL. Nothing is computed before etrun_text_next. */
int etrun_text_prompt(etrun_text text, const char *prompt, size_t bytes, const etrun_sampling *sampling, char **error);
int etrun_text_tokens(etrun_text text, const int32_t *tokens, size_t n, const etrun_sampling *sampling, char **error);
int etrun_text_chat(etrun_text text, const etrun_message *messages, size_t n, const etrun_sampling *sampling, char **error);

/* etrun_text_conversation is etrun_text_chat with a request in JSON: an object with messages, as in
 * OpenAI's API (role, content, reasoning_content, tool_calls, tool_call_id, name), tools, a list of their
 * definitions, and chat_template_kwargs, values for the template. Calls of tools in the reply are text,
 * in the model's own format. */
int etrun_text_conversation(etrun_text text, const char *json, size_t bytes, const etrun_sampling *sampling, char **error);

/* etrun_text_media encodes the pictures and sounds of the prompt, the chat or the conversation that is
 * started next. Their places are <image> and <audio> in it, in order; those without a place precede the
 * prompt, or the last message of the user. The media of earlier messages are given again; they are not
 * computed again while the model keeps them. */
int etrun_text_media(etrun_text text, const etrun_medium *media, size_t n, char **error);

/* etrun_text_next waits for the next piece. The last one has a finish; a call after it is an error,
 * ETRUN_INPUT. A call that fails sets piece to the text generated before the failure, often none,
 * and ends the text; the handle remains usable. */
int etrun_text_next(etrun_text text, etrun_piece *piece, char **error);

/* etrun_text_cancel ends the text in progress, if any, from any thread: etrun_text_next returns
 * ETRUN_CANCELLED. */
int etrun_text_cancel(etrun_text text, char **error);

/* ---- Vectors of texts ---- */

/* etrun_embedder_open opens a model that encodes texts, such as BERT. The program must stay open.
 * length is that of its vectors, and may be NULL. An embedder may be used by several threads. */
int etrun_embedder_open(etrun_program program, const etrun_embedder_options *options, etrun_embedder *embedder, size_t *length,
                       char **error);

/* etrun_embed computes the vectors of n texts, each with length floats: bytes is the size of them all. */
int etrun_embed(etrun_embedder embedder, const etrun_bytes *texts, size_t n, float *vectors, size_t bytes, char **error);
int etrun_embedder_close(etrun_embedder embedder, char **error);

/* ---- Recordings ---- */

/* etrun_speech_open opens a model of speech: Whisper, a transducer, a CTC model, a voice detector, or one that finds
 * speakers. The program must stay open. A model may be used by several threads. */
int etrun_speech_open(etrun_program program, const etrun_speech_options *options, etrun_speech *speech, char **error);

/* etrun_transcribe transcribes a WAVE or FLAC file. json is an object with text, language, duration in seconds, segments (start,
 * end, text, speaker: -1 if it is not known), words (word, start, end) and tokens, of voice detectors probabilities; free it
 * with etrun_free. options may be NULL. */
int etrun_transcribe(etrun_speech speech, const etrun_bytes *file, const etrun_transcription *options, char **json, char **error);
int etrun_speech_close(etrun_speech speech, char **error);

#endif
#ifdef __cplusplus
}
#endif
#endif
