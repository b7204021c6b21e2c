//go:build !(linux && (amd64 || arm64 || riscv64 || arm || 386)) && !(darwin && arm64) && !wasip1

package platform

var _ = etrun_does_not_run_on_this_machine_see_docs_platforms_md_for_those_that_it_runs_on
