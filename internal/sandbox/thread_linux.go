//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Thread confines the calling thread, which must be locked and must not be unlocked: it and the
// processes that it starts have no capabilities and cannot gain privileges, may only open the given
// files, no TCP connections and no abstract sockets, and can only signal each other. Missing files
// are omitted.
func Thread(files Files) []Layer {
	return []Layer{
		{privileges, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)},
		{capabilities, dropCapabilities()},
		{landlock, restrict(files)},
	}
}

// dropCapabilities removes all capabilities from processes that the thread starts, even as root.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	if have[0].Permitted|have[1].Permitted|have[0].Inheritable|have[1].Inheritable == 0 {
		return nil // and none in the ambient set: they are permitted, too
	}
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); ; c++ {
		if _, missing := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); missing != nil {
			break // after the last capability
		}
		err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0))
	}
	have[0].Inheritable, have[1].Inheritable = 0, 0
	return errors.Join(err, unix.Capset(&header, &have[0]))
}

// rights are the access rights added by each version of Landlock.
var rights = []unix.LandlockRulesetAttr{
	{Handled_access_fs: 1<<13 - 1},
	{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER},
	{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{Handled_access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
	{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
}

// landlockVersion returns the version of the kernel's landlock interface.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("not supported by the kernel: %w", errno)
	}
	return int(v), nil
}

// restrict applies a landlock ruleset to the thread.
func restrict(files Files) error {
	version, err := landlockVersion()
	if err != nil {
		return err
	}
	var all unix.LandlockRulesetAttr
	for _, r := range rights[:min(version, len(rights))] {
		all.Handled_access_fs |= r.Handled_access_fs
		all.Handled_access_net |= r.Handled_access_net
		all.Scoped |= r.Scoped
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&all)), unsafe.Sizeof(all), 0)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer unix.Close(int(set))
	if err := files.allow(int(set)); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

const (
	read    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	execute = unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// allow adds a rule for each file.
func (f *Files) allow(set int) error {
	for _, list := range []struct {
		paths  []string
		access uint64
	}{{f.Read, read}, {f.Execute, read | execute}} {
		for _, path := range list.paths {
			if err := allowPath(set, path, list.access); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	for _, fd := range f.Open {
		if err := allowOpen(set, int(fd), read); err != nil {
			return err
		}
	}
	return nil
}

func allowPath(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return allowOpen(set, fd, access)
}

// allowOpen allows access to a descriptor's file or folder.
func allowOpen(set, fd int, access uint64) error {
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &^= unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule: %w", errno)
	}
	return nil
}

// Available reports the availability of the layers that not every kernel supports.
func Available() []Layer {
	_, err := landlockVersion()
	return []Layer{{landlock, err}, {seccomp, seccompAvailable()}}
}
