/* The NPU. */
#ifndef NPU_H
#define NPU_H

#include "job.h"

/* npu_config is the register CONFIG, 0 if there is no NPU. */
uint32_t npu_config(void);

/* npu_run runs a job's stream to its end. base is the address of each region, 0 for
 * none. It fills in status, detail, qread and counts. */
void npu_run(const struct job *job, uint32_t stream, const uint32_t base[REGIONS], struct reply *reply);

#endif
