package main

import (
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

// What tests read of the JSON objects of commands in other packages.
type (
	comparedReport struct {
		Differ  int
		Outputs []struct {
			Differs string `json:"difference"`
		}
		Layer *struct {
			layers.Result
			Nearest []layers.Near
		}
	}
	difference struct{ Section, Method, Item, A, B, Detail string }
	planned    struct {
		FileWhole bool  `json:"file_plan_usable"`
		OwnBytes  int64 `json:"own_bytes"`
		Storages  []storage
	}
	storage struct {
		Kind        string
		Bytes       int64
		First, Last int
		FirstMoment int    `json:"first_moment"`
		LastMoment  int    `json:"last_moment"`
		FileArena   *int   `json:"file_arena"`
		FileOffset  *int64 `json:"file_offset"`
		OwnOffset   *int64 `json:"own_offset"`
	}
	benchReport struct {
		Schema      string
		Interrupted bool
		Arms        []struct {
			Name    string `json:"arm"`
			Flags   string
			Methods []string
			Threads int
			Engines []string
			Stages  []struct{ Name string }          `json:"load_stages"`
			FirstMS float64                          `json:"first_run_ms"`
			Latency stats.Summary                    `json:"latency_ms"`
			PerCell int                              `json:"runs_per_cell"`
			Cells   []float64                        `json:"cells_ms"`
			Allocs  float64                          `json:"allocations_per_run"`
			Memory  struct{ Program, Planned int64 } `json:"memory_bytes"`
		}
		Comparisons []struct {
			Threads [2]int
			stats.Ratio
		}
		Environment struct {
			Version    string
			Processors int
			Backends   []any
		}
		Process processBytes `json:"process_bytes"`
	}
	processBytes struct {
		PeakResident int64 `json:"peak_resident"`
		GoHeap       int64 `json:"go_heap"`
	}
	npuCycles struct {
		MACs       int64
		Cycles     float64
		Use        float64 `json:"mac_use"`
		Operations []struct {
			NPU        int64   `json:"npu_cycles"`
			Memory     float64 `json:"memory_cycles"`
			Begin, End float64
		}
		Kinds []struct{ Share float64 }
	}
	npuQuantization struct {
		Method           string
		Delegate, Output int
		Scale            float64
		ZeroPoint        int64 `json:"zero_point"`
	}
)
