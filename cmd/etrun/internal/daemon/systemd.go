package daemon

import (
	"context"
	"log/slog"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
)

// States that systemd is told of.
const (
	ready    = sd.SdNotifyReady
	stopping = sd.SdNotifyStopping
)

// reloading is with the time that systemd wants to know.
func reloading() string { return sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec() }

// notify tells systemd, where it started this process.
func notify(log *slog.Logger, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		log.Warn("systemd not notified", "error", err)
	}
}

// feedWatchdog has each model executed, in its turn among the requests, twice in systemd's
// time limit, and says so only where that succeeds.
func (d *Daemon) feedWatchdog(ctx context.Context) {
	limit, err := sd.SdWatchdogEnabled(false)
	if err != nil || limit == 0 {
		return
	}
	ticker := time.NewTicker(limit / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		try, cancel := context.WithTimeout(ctx, limit/2)
		err := d.server.Try(try)
		cancel()
		if err != nil {
			d.log.Error("watchdog", "error", err)
			continue
		}
		notify(d.log, sd.SdNotifyWatchdog)
	}
}
