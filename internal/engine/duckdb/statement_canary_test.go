package duckdb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The limits of a statement, and the values from which the test reports a violation. The difference is the tolerance
// that the measurement needs.
const (
	mayTake   = 2 * time.Second
	tookLong  = 3 * mayTake
	busy      = 20 * time.Second // delay that a machine with other work may cause
	mayUse    = 64 << 20         // memory of DuckDB; the process may use 640 MiB
	usedMuch  = 700 << 20
	mayWrite  = 16 << 20
	wroteMuch = 128 << 20
	mayGive   = 1 << 20 // bytes of rows
	gaveMuch  = 8 << 20
	manyTasks = 1000
)

// bait is a folder of canaries for one attempt.
type bait struct {
	dir    string
	before map[string]string
	*listener
}

// baits creates identical folders of canaries.
type baits struct {
	dir     string
	pattern string
}

func newBaits(t *testing.T, dir string) *baits {
	t.Helper()

	b := &baits{dir: dir, pattern: filepath.Join(dir, "pattern")}
	require.NoError(t, os.MkdirAll(filepath.Join(b.pattern, "other", "in"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(b.pattern, "home-"+canary), 0o700))

	for name, content := range map[string]string{
		"secret.txt": canary, "secret.csv": "id,v\n1," + canary + "\n", "secret.json": `{"id": 1, "v": "` + canary + `"}`,
		"precious.csv": canary, "x.duckdb_extension": canary, "unheard-" + canary: "", "home-" + canary + "/file.txt": "file",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(b.pattern, name), []byte(content), 0o600))
	}

	db, err := unlocked()
	require.NoError(t, err)

	for _, statement := range []string{
		`COPY (SELECT 1 AS id, '` + canary + `' AS v) TO '{}/secret.parquet' (FORMAT parquet)`,
		`COPY (SELECT 1 AS id, '` + canary + `' AS v) TO '{}/other/in/0.parquet' (FORMAT parquet)`,
		`COPY (SELECT range AS id, 'note ' || range AS v FROM range(1000)) TO '{}/given.parquet' (FORMAT parquet, FIELD_IDS {id: 1, v: 2})`,
		`ATTACH '{}/secret.db' AS made`,
		`CREATE TABLE made.t AS SELECT 1 AS id, '` + canary + `' AS v`,
		`DETACH made`,
	} {
		require.NoError(t, db.exec(strings.ReplaceAll(statement, "{}", b.pattern)))
	}

	return b
}

// lay creates the folder of an attempt. The canary is not part of any statement, nor of any name that a statement
// contains.
func (b *baits) lay(t *testing.T) *bait {
	t.Helper()

	dir, err := os.MkdirTemp(b.dir, "bait-") //nolint:usetesting // it goes after the try: there are hundreds
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(dir, os.DirFS(b.pattern)))

	return &bait{dir: dir, before: tree(dir), listener: listen(t)}
}

// tree returns the content of a folder, without the job of an unsealed intruder.
func tree(dir string) map[string]string {
	found := map[string]string{}

	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what goes while one looks is missed in the comparison
		case entry.IsDir() && path == filepath.Join(dir, "job"):
			return fs.SkipDir
		}

		found[path] = entry.Type().String()

		if file, err := os.Open(path); err == nil && entry.Type().IsRegular() {
			hash := sha256.New()
			_, _ = io.Copy(hash, io.LimitReader(file, 1<<20))
			_ = file.Close()

			found[path] = hex.EncodeToString(hash.Sum(nil))
		}

		return nil
	})

	return found
}

// outcome is the result of an attempt.
type outcome struct {
	said   string // first part of the columns, rows and errors
	bytes  int64  // bytes of all rows
	took   time.Duration
	used   usage
	failed string // how it ended without a result: refused or stopped
	died   bool
}

const kept = 4 << 20 // bytes of the output that are kept

func (o *outcome) hear(text []byte) {
	o.bytes += int64(len(text))
	o.said += string(text[:max(0, min(len(text), kept-len(o.said)))])
}

// effects returns the canaries that an attempt reached.
func (o *outcome) effects(b *bait, long time.Duration, marks ...string) map[string]bool {
	says := strings.Contains(o.said, canary)
	for _, mark := range marks {
		says = says || strings.Contains(o.said, mark)
	}

	found := map[string]bool{
		"says": says, "writes": !maps.Equal(b.before, tree(b.dir)), "calls": b.heard.Load(), "dies": o.died,
		"lasts": o.took > long, "memory": o.used.memory > usedMuch, "disk": o.used.disk > wroteMuch,
		"threads": o.used.threads > manyTasks, "floods": o.bytes > gaveMuch,
	}
	maps.DeleteFunc(found, func(_ string, reached bool) bool { return !reached })

	return found
}

// usage contains the resources that a process uses.
type usage struct{ memory, disk, threads int64 }

func (u *usage) most(other usage) {
	u.memory, u.disk, u.threads = max(u.memory, other.memory), max(u.disk, other.disk), max(u.threads, other.threads)
}

// usageOf measures a process and its working folder.
func usageOf(pid int) (u usage) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))

	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return u
	}

	for line := range strings.Lines(string(status)) {
		field, value, _ := strings.Cut(line, ":")
		number, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)

		switch field {
		case "VmHWM":
			u.memory = number << 10
		case "Threads":
			u.threads = number
		}
	}

	if dir, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil {
		u.disk = written512(dir)
	}

	return u
}

func written512(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it may go at any moment
		}

		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}

		return nil
	})

	return sum
}

// watch measures all children that work in a folder until stop is called, which returns the highest usage. The folder
// is necessary because other tests have children too.
func watch(t *testing.T, dir string) (stop func() usage) {
	t.Helper()

	var (
		most usage
		end  = make(chan struct{})
		wait sync.WaitGroup
	)

	wait.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
			}

			for _, pid := range childrenOf(os.Getpid()) {
				if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && strings.HasPrefix(at, dir) {
					most.most(usageOf(pid))
				}
			}
		}
	})

	return func() usage {
		close(end)
		wait.Wait()

		return most
	}
}

func childrenOf(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}

	return pids
}
