package cpu

import (
	"bufio"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Quota returns the CPU limit of the process's control group in processors: the minimum over the
// group and its ancestors, of cgroup v2 (cpu.max) or v1 (cpu.cfs_quota_us). limited is false if
// there is none.
func Quota() (processors float64, limited bool) { return quota(os.DirFS("/")) }

// Memory returns the bytes of memory that the process can have: the machine's, or the limit of its control groups
// (memory.max or memory.limit_in_bytes). It is 0 if they are not known.
func Memory() int64 { return memory(os.DirFS("/")) }

func memory(root fs.FS) int64 {
	return memories.bytes(root, sum(root, "proc/meminfo", "MemTotal:")<<10)
}

// Available returns the bytes of memory that the process can have now: the least of what the machine and its control groups have left.
// What the kernel can drop, such as pages of files, counts as left, and so does memory for swapping. It is 0 if that is not known.
func Available() int64 { return available(os.DirFS("/")) }

func available(root fs.FS) int64 {
	left := sum(root, "proc/meminfo", "MemAvailable:")
	if left == 0 {
		return 0
	}
	swap := sum(root, "proc/meminfo", "SwapFree:")
	return remainders.bytes(root, left<<10) + swap<<10
}

// sum returns the sum of numbers in a file of lines of names and numbers.
func sum(root fs.FS, file string, names ...string) (total int64) {
	for line := range lines(root, file) {
		if name, text, _ := strings.Cut(line, " "); slices.Contains(names, name) {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 53)
			total += n
		}
	}
	return total
}

// controller limits a resource of groups. Its limits are read by the functions for cgroup v2 and v1.
type controller struct {
	name   string
	v2, v1 func(root fs.FS, dir string) (float64, bool)
}

var (
	processors = controller{"cpu", limitV2, limitV1}
	memories   = controller{"memory", number("memory.max"), number("memory.limit_in_bytes")}
	remainders = controller{"memory", remainder(number("memory.max"), "memory.current", ""), remainder(number("memory.limit_in_bytes"),
		"memory.usage_in_bytes", "total_")}
)

// remainder returns a reader of what is left below limits: a file has the memory in use, and memory.stat the part of it that are pages of files.
func remainder(limit func(fs.FS, string) (float64, bool), used, prefix string) func(root fs.FS, dir string) (float64, bool) {
	return func(root fs.FS, dir string) (float64, bool) {
		most, limited := limit(root, dir)
		now, known := number(used)(root, dir)
		files := sum(root, path.Join(dir, "memory.stat"), prefix+"active_file", prefix+"inactive_file")
		return max(most-now+float64(files), 1), limited && known
	}
}

// number returns a reader of limits that are the number in a file.
func number(name string) func(root fs.FS, dir string) (float64, bool) {
	return func(root fs.FS, dir string) (float64, bool) {
		for line := range lines(root, path.Join(dir, name)) { // "max" means no limit
			return ratio(line, "1")
		}
		return 0, false
	}
}

// group is a directory of a cgroup hierarchy that contains the process, and the reader of its
// limit.
type group struct {
	mount, dir string
	limit      func(root fs.FS, dir string) (float64, bool)
}

func quota(root fs.FS) (float64, bool) { return processors.least(root) }

// least returns the least limit of the process's groups and their ancestors.
func (c controller) least(root fs.FS) (least float64, limited bool) {
	for _, g := range c.groups(root) {
		for dir := g.dir; ; dir = path.Dir(dir) {
			if q, ok := g.limit(root, path.Join(g.mount, dir)); ok && (!limited || q < least) {
				least, limited = q, true
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return least, limited
}

// bytes returns the least limit, or that of the machine if it is less; 0 is not known.
func (c controller) bytes(root fs.FS, machine int64) int64 {
	if limit, limited := c.least(root); limited && (machine == 0 || limit < float64(machine)) {
		return int64(limit)
	}
	return machine
}

// groups returns the process's groups from /proc/self/cgroup, and the mount points of their
// hierarchies.
func (c controller) groups(root fs.FS) (found []group) {
	v2, v1 := c.mounts(root)
	for line := range lines(root, "proc/self/cgroup") {
		fields := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[0] == "0" && v2.point != "":
			found = append(found, group{v2.point, v2.inside(fields[2]), c.v2})
		case hasWord(fields[1], c.name) && v1.point != "":
			found = append(found, group{v1.point, v1.inside(fields[2]), c.v1})
		}
	}
	return found
}

// mount is the mount point of a directory of a hierarchy.
type mount struct{ root, point string }

// inside returns a group's directory below the mount point. A group outside the mounted directory,
// as seen inside a container, is the mount point itself.
func (m mount) inside(dir string) string {
	if rest, ok := strings.CutPrefix(path.Clean(dir), strings.TrimSuffix(m.root, "/")); ok && !strings.HasPrefix(dir, "/..") {
		return path.Join("/", rest)
	}
	return "/"
}

// mounts returns the cgroup v2 hierarchy and the v1 hierarchy of the controller from
// /proc/self/mountinfo.
func (c controller) mounts(root fs.FS) (v2, v1 mount) {
	for line := range lines(root, "proc/self/mountinfo") {
		fields, kind, ok := strings.Cut(line, " - ") // …: root is the 4th field, mount point the 5th; type source options
		where, what := strings.Fields(fields), strings.Fields(kind)
		if !ok || len(where) < 5 || len(what) < 3 {
			continue
		}
		m := mount{root: where[3], point: strings.TrimPrefix(where[4], "/")}
		switch {
		case what[0] == "cgroup2":
			v2 = m
		case what[0] == "cgroup" && hasWord(what[2], c.name):
			v1 = m
		}
	}
	return v2, v1
}

func limitV2(root fs.FS, dir string) (float64, bool) {
	for line := range lines(root, path.Join(dir, "cpu.max")) {
		limit, period, _ := strings.Cut(line, " ") // "max 100000" means no limit
		return ratio(limit, period)
	}
	return 0, false
}

func limitV1(root fs.FS, dir string) (float64, bool) {
	for limit := range lines(root, path.Join(dir, "cpu.cfs_quota_us")) {
		for period := range lines(root, path.Join(dir, "cpu.cfs_period_us")) {
			return ratio(limit, period) // -1 means no limit
		}
	}
	return 0, false
}

func ratio(limit, period string) (float64, bool) {
	l, errL := strconv.ParseUint(limit, 10, 63)
	p, errP := strconv.ParseUint(period, 10, 63)
	if errL != nil || errP != nil || p == 0 {
		return 0, false
	}
	return float64(l) / float64(p), true
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// lines yields the lines of a file without line ends; none if it is not readable.
func lines(root fs.FS, name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, err := root.Open(name)
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan() && yield(s.Text()); { // as little memory as a line has: every load reads some of these files
		}
	}
}
