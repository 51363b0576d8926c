package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are the limits of a child. A child that exceeds one is killed. Zero means the default, never no limit.
type Limits struct {
	Memory int64         // bytes of mapped, not used, data (RLIMIT_DATA); must exceed an engine's own limit; default 1 GiB
	Disk   int64         // bytes of one file, and of all files in tmp/; default 1 GiB
	Data   int64         // bytes through Data; default 1 GiB
	CPU    time.Duration // since the start of the process, rounded up to seconds; default twice Wall
	Wall   time.Duration // since Start; default one minute
	Files  int           // open at the same time; default 64
}

const (
	maxEntries = 10_000 // files in tmp/
	maxThreads = 512
	watchEvery = 200 * time.Millisecond
)

func (l Limits) orDefault() Limits {
	if l.Memory <= 0 {
		l.Memory = 1 << 30
	}

	if l.Disk <= 0 {
		l.Disk = 1 << 30
	}

	if l.Data <= 0 {
		l.Data = 1 << 30
	}

	if l.Wall <= 0 {
		l.Wall = time.Minute
	}

	if l.CPU <= 0 {
		l.CPU = 2 * l.Wall
	}

	if l.Files <= 0 {
		l.Files = 64
	}

	return l
}

// set applies the limits to a running process.
func (l Limits) set(pid int) error {
	seconds := (l.CPU + time.Second - 1) / time.Second

	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_DATA, uint64(l.Memory)},  //nolint:gosec // G115: positive by orDefault, as the next ones
		{unix.RLIMIT_FSIZE, uint64(l.Disk)},   //nolint:gosec // G115
		{unix.RLIMIT_CPU, uint64(seconds)},    //nolint:gosec // G115
		{unix.RLIMIT_NOFILE, uint64(l.Files)}, //nolint:gosec // G115
	} {
		both := unix.Rlimit{Cur: limit.value, Max: limit.value}
		if err := unix.Prlimit(pid, limit.resource, &both, nil); err != nil {
			return fmt.Errorf("setting the limit %d of a sealed process: %w", limit.resource, err)
		}
	}

	return nil
}

// watch enforces what the kernel has no limit for: the sum of all files, their number, and threads.
func (c *Child) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()

	for {
		select {
		case <-c.ended:
			return
		case <-ticker.C:
		}

		if threads := c.sample(); threads > maxThreads {
			c.fail(fmt.Errorf("%w: %d threads", ErrOutput, threads))
		}

		left := maxEntries

		used, err := usage(c.folder.Tmp, &left)
		if err != nil {
			continue // the folder can be removed at any moment
		}

		used += c.unlinked()
		if used > c.limits.Disk || left < 0 {
			c.fail(fmt.Errorf("%w: files", ErrOutput))
		}
	}
}

// sample records the memory of the child, and returns the number of its threads. The usage that wait returns cannot be
// used: its peak includes the memory of the parent, because the child started in the memory of the parent.
func (c *Child) sample() int64 {
	file, err := os.Open(filepath.Join(c.proc(), "status"))
	if err != nil {
		return 0
	}

	defer file.Close()

	var threads int64

	for lines := bufio.NewScanner(file); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ":")
		number, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)

		switch field {
		case "VmHWM":
			c.mu.Lock()
			c.peak = max(c.peak, number<<10)
			c.mu.Unlock()
		case "VmData":
			c.mu.Lock()
			c.mapped = number << 10
			c.mu.Unlock()
		case "Threads":
			threads = number
		}
	}

	return threads
}

// unlinked returns the size of files that the child holds open but has removed from the folder.
func (c *Child) unlinked() int64 {
	folder := filepath.Join(c.proc(), "fd")

	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0
	}

	var sum int64

	for _, entry := range entries {
		var stat unix.Stat_t
		if unix.Stat(filepath.Join(folder, entry.Name()), &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG && stat.Nlink == 0 {
			sum += stat.Blocks * 512
		}
	}

	return sum
}

// proc returns the child's folder in /proc. It can be read until the child is reaped. The process number is not reused
// soon enough for a late read to matter.
func (c *Child) proc() string { return filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid)) }

// usage returns the size of all files below a folder. It stops when there are more than *left files.
func usage(path string, left *int) (int64, error) {
	folder, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}

	defer folder.Close()

	names, _ := folder.Readdirnames(*left + 1)
	*left -= len(names)

	var sum int64

	for _, name := range names {
		var stat unix.Stat_t
		if unix.Fstatat(int(folder.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}

		sum += stat.Blocks * 512

		if stat.Mode&unix.S_IFMT == unix.S_IFDIR && *left > 0 {
			below, err := usage(filepath.Join(path, name), left)
			if err != nil {
				continue
			}

			sum += below
		}
	}

	return sum, nil
}
