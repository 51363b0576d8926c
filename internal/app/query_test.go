package app

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/engine"
)

// kernelFiles writes files in the format of the kernel and returns the paths that memoryLimit reads.
func kernelFiles(t *testing.T, groups, machine string, limits map[string]string) (groupsPath, mounted, machinePath string) {
	t.Helper()

	dir := t.TempDir()
	write := func(path, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}

	groupsPath, mounted, machinePath = filepath.Join(dir, "cgroup"), filepath.Join(dir, "mounted"), filepath.Join(dir, "meminfo")

	if groups != "" {
		write(groupsPath, groups)
	}

	if machine != "" {
		write(machinePath, machine)
	}

	for path, limit := range limits {
		write(filepath.Join(mounted, path), limit+"\n")
	}

	return groupsPath, mounted, machinePath
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()

	const (
		machine  = "MemTotal:       16000000 kB\nMemFree: 1 kB\n"
		total    = 16000000 << 10
		version1 = "12:pids:/docker/abc\n5:memory:/docker/abc\n1:name=systemd:/docker/abc\n"
	)

	for name, c := range map[string]struct {
		groups, machine string
		limits          map[string]string
		want            int64
	}{
		"nothing known":                      {want: math.MaxInt64},
		"only the machine":                   {machine: machine, want: total},
		"no limit":                           {"0::/\n", machine, map[string]string{"memory.max": "max"}, total},
		"a limit of the group":               {"0::/a\n", machine, map[string]string{"a/memory.max": "1000000"}, 1000000},
		"the one above is less":              {"0::/a/b/c\n", machine, map[string]string{"a/b/c/memory.max": "3000000", "a/b/memory.max": "max", "a/memory.max": "2000000"}, 2000000},
		"the one below is less":              {"0::/a/b\n", machine, map[string]string{"a/b/memory.max": "1000000", "a/memory.max": "2000000"}, 1000000},
		"a container that sees its own root": {"0::/kubepods/pod/abc\n", machine, map[string]string{"memory.max": "1000000"}, 1000000},
		"more than the machine has":          {"0::/a\n", machine, map[string]string{"a/memory.max": "99999999999999"}, total},
		"version 1":                          {version1, machine, map[string]string{"memory/docker/abc/memory.limit_in_bytes": "1000000"}, 1000000},
		"version 1 without a limit":          {version1, machine, map[string]string{"memory/docker/abc/memory.limit_in_bytes": "9223372036854771712"}, total},
		"version 1, its own root":            {version1, machine, map[string]string{"memory/memory.limit_in_bytes": "1000000"}, 1000000},
		"both versions":                      {version1 + "0::/a\n", machine, map[string]string{"memory/docker/memory.limit_in_bytes": "1000000", "a/memory.max": "2000000"}, 1000000},
		"nonsense":                           {"x\n\n:::\n0::\n", "MemTotal: much kB\n", map[string]string{"memory.max": "much"}, math.MaxInt64},
		"an empty total":                     {"", "MemTotal:", nil, math.MaxInt64},
		"a machine that does not say":        {"0::/\n", "MemFree: 1 kB\n", map[string]string{"memory.max": "1000000"}, 1000000},
	} {
		groups, mounted, meminfo := kernelFiles(t, c.groups, c.machine, c.limits)
		require.Equal(t, c.want, memoryLimit(groups, mounted, meminfo), name)
	}

	require.Positive(t, memoryLimit("/proc/self/cgroup", "/sys/fs/cgroup", "/proc/meminfo"))
	require.Less(t, memoryLimit("/proc/self/cgroup", "/sys/fs/cgroup", "/proc/meminfo"), int64(math.MaxInt64))
}

func TestGroupLimitEnds(t *testing.T) {
	t.Parallel()

	for _, path := range []string{"", ".", "/", "a", "a/b", "/a/b", "../..", "/..", strings.Repeat("/a", 100)} {
		require.Equal(t, int64(math.MaxInt64), groupLimit(t.TempDir(), path, "memory.max"), path)
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()

	most := perProcessor * runtime.NumCPU()

	for _, c := range []struct {
		memory, query, ingest               int64
		workers, maintainers, exports, want int
	}{
		{0, 512 << 20, 1 << 30, 2, 0, 0, 1}, // one statement can always run
		{-1, 512 << 20, 1 << 30, 2, 0, 0, 1},
		{serverMemory + 2*engine.Mapped(512<<20), 512 << 20, 1 << 30, 0, 0, 0, 2},
		{serverMemory + 2*engine.Mapped(512<<20) - 1, 512 << 20, 1 << 30, 0, 0, 0, 1},
		{serverMemory + 3*engine.Mapped(1<<30) + 3*engine.Mapped(512<<20), 512 << 20, 1 << 30, 2, 0, 0, 3}, // two workers, and one for large files
		{serverMemory + 2*engine.Mapped(256<<20) + 3*engine.Mapped(512<<20) - 1, 512 << 20, 1 << 30, 0, 2, 0, 2},
		{serverMemory + 2*engine.Mapped(256<<20) + 3*engine.Mapped(512<<20), 512 << 20, 1 << 30, 0, 2, 1, 2}, // an export takes as much as a statement
		{math.MaxInt64, 512 << 20, 1 << 30, 2, 0, 0, most},
	} {
		a := App{config: config.Serve{
			Query:       config.Query{Memory: config.Bytes(c.query)},
			Ingest:      config.Ingest{Workers: c.workers, Memory: config.Bytes(c.ingest)},
			Maintenance: config.Maintenance{Workers: c.maintainers, Memory: 256 << 20},
			Export:      config.Export{Workers: c.exports},
		}}
		require.Equal(t, min(c.want, most), a.room(c.memory), "%+v", c)
	}
}
