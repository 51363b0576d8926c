package app

import (
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/disk"
)

// watchFolder creates the work folder and starts to monitor its file system.
func (a *App) watchFolder() (err error) {
	c := a.config.Sandbox

	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("QUERN_SANDBOX_DIR: %w", err)
	}

	a.folder, err = disk.New(disk.Config{
		Dir: c.Dir, ReserveBytes: int64(c.ReserveBytes), ReserveInodes: int64(c.ReserveFiles), Log: a.log,
	})
	if err != nil {
		return fmt.Errorf("QUERN_SANDBOX_DIR: %w", err)
	}

	for name, of := range map[string]struct {
		help string
		read func(disk.State) float64
	}{
		"free_bytes":  {"Free space on the file system of the work folder.", func(s disk.State) float64 { return float64(s.FreeBytes) }},
		"free_inodes": {"Free inodes on the file system of the work folder.", func(s disk.State) float64 { return float64(s.FreeInodes) }},
		"full": {"1 while free space is below the reserve and the cache is empty.", func(s disk.State) float64 {
			if s.Full {
				return 1
			}

			return 0
		}},
	} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quern_disk_" + name, Help: of.help},
			func() float64 { return of.read(a.folder.State()) }))
	}

	return nil
}
