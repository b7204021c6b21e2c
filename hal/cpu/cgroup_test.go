package cpu

import (
	"runtime"
	"testing"
	"testing/fstest"
)

func files(pairs ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fs[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fs
}

const (
	mountV2     = "24 1 0:22 / /proc rw - proc proc rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	mountV1     = "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	mountDocker = "32 24 0:28 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
)

func TestQuota(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   fstest.MapFS
		want    float64
		limited bool
	}{
		{"nothing mounted", files(), 0, false},
		{"v2, container", files("proc/self/cgroup", "0::/\n", "proc/self/mountinfo", mountV2,
			"sys/fs/cgroup/cpu.max", "150000 100000\n"), 1.5, true},
		{"v2, no limit", files("proc/self/cgroup", "0::/a.slice\n", "proc/self/mountinfo", mountV2,
			"sys/fs/cgroup/a.slice/cpu.max", "max 100000\n"), 0, false},
		{"v2, an ancestor is stricter", files("proc/self/cgroup", "0::/a.slice/b.scope\n", "proc/self/mountinfo", mountV2,
			"sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n", "sys/fs/cgroup/a.slice/b.scope/cpu.max", "400000 100000\n"), 0.5, true},
		{"v2, outside of the mount", files("proc/self/cgroup", "0::/../other\n", "proc/self/mountinfo", mountV2,
			"sys/fs/cgroup/cpu.max", "300000 100000\n"), 3, true},
		{"v1", files("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n", "proc/self/mountinfo", mountV1,
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "200000\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"), 2, true},
		{"v1, no limit", files("proc/self/cgroup", "3:cpu:/\n", "proc/self/mountinfo", mountV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"), 0, false},
		{"v1, a container's part is mounted", files("proc/self/cgroup", "3:cpu:/docker/abc\n", "proc/self/mountinfo", mountDocker,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"), 0.25, true},
		{"damaged", files("proc/self/cgroup", "0::/\nnonsense\n", "proc/self/mountinfo", "short - line\n"+mountV2,
			"sys/fs/cgroup/cpu.max", "100000 0\n"), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, limited := quota(c.files)
			if got != c.want || limited != c.limited {
				t.Errorf("got %v, %v, want %v, %v", got, limited, c.want, c.limited)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	const machine = "MemTotal:        4096 kB\nMemFree: 1 kB\nMemAvailable: 2048 kB\nSwapFree: 1 kB\n"
	const pages = "active_file 4096\nactive_anon 1\ninactive_file 8192\ntotal_active_file 65536\ntotal_inactive_file 65536\n"
	for _, c := range []struct {
		name      string
		files     fstest.MapFS
		want      int64
		available int64
	}{
		{"not known", files(), 0, 0},
		{"the machine's", files("proc/meminfo", machine), 4 << 20, 2<<20 + 1<<10},
		{"v2", files("proc/meminfo", machine, "proc/self/cgroup", "0::/a/b\n", "proc/self/mountinfo", mountV2,
			"sys/fs/cgroup/a/memory.max", "1048576\n", "sys/fs/cgroup/a/b/memory.max", "max\n",
			"sys/fs/cgroup/a/memory.current", "1000000\n", "sys/fs/cgroup/a/memory.stat", pages), 1 << 20, 1<<20 - 1e6 + 12<<10 + 1<<10},
		{"v1", files("proc/meminfo", machine, "proc/self/cgroup", "4:memory:/\n", "proc/self/mountinfo", mountV1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n", "sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n",
			"sys/fs/cgroup/memory/memory.stat", pages), 1 << 20, 1<<20 - 1e6 + 128<<10 + 1<<10},
		{"all in use", files("proc/meminfo", machine, "proc/self/cgroup", "0::/\n", "proc/self/mountinfo", mountV2,
			"sys/fs/cgroup/memory.max", "1048576\n", "sys/fs/cgroup/memory.current", "1048577\n"), 1 << 20, 1 + 1<<10},
		{"v1, more than there is", files("proc/meminfo", machine, "proc/self/cgroup", "4:memory:/\n", "proc/self/mountinfo", mountV1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n"), 4 << 20, 2<<20 + 1<<10},
	} {
		if got := memory(c.files); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
		if got := available(c.files); got != c.available {
			t.Errorf("%s: got %d available, want %d", c.name, got, c.available)
		}
	}
}

func TestDefaultThreads(t *testing.T) {
	if n := DefaultThreads(); n < 1 || n > Allowed() {
		t.Errorf("got %d, want 1 to %d", n, Allowed())
	}
	if n := Allowed(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("allowed: got %d, want 1 to %d", n, runtime.NumCPU())
	}
}

func TestFeatures(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Features() {
		if f.Name == "" || seen[f.Name] {
			t.Errorf("feature %q: empty or twice", f.Name)
		}
		seen[f.Name] = true
	}
}
