package daemon

import (
	"context"
	"log/slog"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
)

// States reported to systemd.
const (
	ready    = sd.SdNotifyReady
	stopping = sd.SdNotifyStopping
)

// reloading returns the state with the timestamp that systemd requires.
func reloading() string { return sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec() }

// notify reports a state to systemd, if it started this process.
func notify(log *slog.Logger, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		log.Warn("systemd not notified", "error", err)
	}
}

// feedWatchdog runs each model, in its queue of requests, twice per watchdog interval, and notifies
// systemd if all runs succeed.
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
