package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// listen opens the listeners of a flag, or none.
func (s *Settings) listen(ctx context.Context, flag string, addresses []string,
	encrypted *tls.Config, known bool) (list []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				_ = l.Close()
			}
		}
	}()
	for _, address := range addresses {
		more, err := s.listenOn(ctx, flag, address)
		list = append(list, more...)
		if err != nil {
			return list, err
		}
	}
	return list, s.protect(flag, list, encrypted, known)
}

// protect encrypts listeners that other machines can reach, and those of this machine if there is a certificate.
func (s *Settings) protect(flag string, list []net.Listener, encrypted *tls.Config, known bool) error {
	for i, l := range list {
		if _, unix := l.Addr().(*net.UnixAddr); unix {
			continue
		}
		if !s.Insecure && !local(l.Addr()) && (encrypted == nil || !known) {
			return session.Usage("--%s %v is reachable from other machines; "+
				"give --tls-cert with --token-file or --client-ca, or --insecure", flag, l.Addr())
		}
		if encrypted != nil {
			list[i] = tls.NewListener(l, encrypted)
		}
	}
	return nil
}

func (s *Settings) listenOn(ctx context.Context, flag, address string) ([]net.Listener, error) {
	if address == "systemd" && flag == listenFlag {
		list, err := activation.Listeners()
		list = slices.DeleteFunc(list, func(l net.Listener) bool { return l == nil }) // sockets that are not listeners
		if err == nil && len(list) == 0 {
			err = session.Usage("--listen systemd: systemd opened no socket for this process")
		}
		return list, err
	}
	var l net.Listener
	var err error
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		l, err = s.listenUnix(ctx, path)
	} else {
		if _, _, bad := net.SplitHostPort(address); bad != nil {
			return nil, session.Usage("--%s %s: %w", flag, address, bad)
		}
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	return []net.Listener{l}, nil
}

// onMachine reports whether an address is local or a unix socket.
func onMachine(a net.Addr) bool {
	_, unix := a.(*net.UnixAddr)
	return unix || local(a)
}

// local reports whether only this machine can reach an address.
func local(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// listenUnix creates a socket, replacing one left by an ended process.
func (s *Settings) listenUnix(ctx context.Context, path string) (net.Listener, error) {
	mode, err := strconv.ParseUint(s.SocketMode, 8, 12)
	if err != nil {
		return nil, session.Usage("--socket-mode %q, want an octal number", s.SocketMode)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = c.Close()
			return nil, &fs.PathError{Op: "listen", Path: path, Err: errors.New("another process is listening on it")}
		}
		_ = os.Remove(path) // if this fails, so does Listen
	}
	// The socket must be private from the start.
	before := syscall.Umask(0o177)
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	syscall.Umask(before)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, fs.FileMode(mode)); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}
