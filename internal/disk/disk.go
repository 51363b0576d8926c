// Package disk watches the free space and the free inodes of the work folder.
//
// It keeps a part of the file system free, the reserve. When less than the reserve is free, it removes cached files
// one by one. When no cached file is left, the folder is full, and Room returns an error until space is free again.
// It logs one line when the folder becomes full and one when the folder has room again.
//
// Faults: Unavailable, LimitExceeded.
package disk

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"time"

	"quern.dev/quern/internal/fault"
)

// Config sets the folder to watch and the reserve.
type Config struct {
	Dir           string
	ReserveBytes  int64 // bytes to keep free, at most a tenth of the file system
	ReserveInodes int64 // inodes to keep free, at most a tenth of the file system
	Log           *slog.Logger
}

// Watch watches one folder. Room of a nil Watch never fails.
type Watch struct {
	config Config

	adding sync.Mutex
	evicts []func() bool

	mu   sync.Mutex
	seen usage
	full string // what is missing; empty if the folder is not full
}

// Values of what can be missing.
const (
	space  = "space"
	inodes = "inodes"
)

const (
	lookEvery = 250 * time.Millisecond
	// share limits the reserve to 1/share of the file system. Otherwise a small file system would be full from the
	// start.
	share = 10
	// slack is the margin after the folder was full: it has room again when the reserve and 1/slack of the reserve
	// are free. Otherwise the next file would make it full again.
	slack = 8
)

// usage is the usage that the file system reports.
type usage struct {
	freeBytes, bytes, freeInodes, inodes int64
}

// New creates a Watch and checks the folder for the first time.
func New(c Config) (*Watch, error) {
	w := &Watch{config: c}

	seen, err := look(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("the work folder: %w", err)
	}

	w.seen = seen

	return w, nil
}

func look(dir string) (usage, error) {
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil {
		return usage{}, fmt.Errorf("%s: %w", dir, err)
	}

	block := found.Frsize
	if block == 0 {
		block = found.Bsize
	}

	//nolint:gosec // sizes of a file system
	return usage{
		freeBytes: int64(found.Bavail) * block, bytes: int64(found.Blocks) * block, freeInodes: int64(found.Ffree), inodes: int64(found.Files),
	}, nil
}

// keptBytes returns the reserve. It is at least one byte, because otherwise a folder without a reserve would never be
// full.
func (w *Watch) keptBytes() int64 { return max(1, min(w.config.ReserveBytes, w.seen.bytes/share)) }

func (w *Watch) keptInodes() int64 { return max(1, min(w.config.ReserveInodes, w.seen.inodes/share)) }

// missing returns what is missing to write this many more bytes. With eased, the slack must be free too. A file
// system without a limit of inodes reports zero inodes.
func (w *Watch) missing(bytes int64, eased bool) string {
	keepBytes, keepInodes := w.keptBytes(), w.keptInodes()
	if eased {
		keepBytes, keepInodes = keepBytes+keepBytes/slack, keepInodes+keepInodes/slack
	}

	switch {
	case w.seen.freeBytes < keepBytes+bytes:
		return space
	case w.seen.inodes > 0 && w.seen.freeInodes < keepInodes:
		return inodes
	default:
		return ""
	}
}

// Evict registers a function that frees space: it removes one cached file, or returns false if there is none.
// Functions are called in the order in which they were registered.
func (w *Watch) Evict(one func() bool) {
	w.adding.Lock()
	defer w.adding.Unlock()

	w.evicts = append(w.evicts, one)
}

func (w *Watch) evict() bool {
	w.adding.Lock()
	evicts := w.evicts
	w.adding.Unlock()

	return slices.ContainsFunc(evicts, func(one func() bool) bool { return one() })
}

// Run checks the folder periodically until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = w.Room(0) // updates the state; the error does not matter here
		}
	}
}

// Room makes sure that this many bytes can be written without using the reserve. It removes cached files if
// necessary.
//
// Faults: Unavailable if there is no room, LimitExceeded if the file system is too small.
func (w *Watch) Room(bytes int64) error {
	if w == nil {
		return nil
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	eased := w.full != ""

	for {
		seen, err := look(w.config.Dir)
		if err != nil {
			return err
		}

		w.seen = seen

		if bytes > seen.bytes-w.keptBytes() {
			return fault.New(fault.LimitExceeded, fmt.Sprintf("This needs %d bytes on the disk of the server, which is smaller.", bytes))
		}

		if w.missing(bytes, eased) == "" {
			break
		}

		eased = true // if something must be removed, remove slightly more than is needed now

		if !w.evict() {
			break
		}
	}

	w.tell(w.missing(0, w.full != ""))

	// The slack counts only if the folder is full.
	if missing := w.missing(bytes, w.full != ""); missing != "" {
		return fault.NoRoom(fmt.Errorf("%s of the work folder: %w", missing, syscall.ENOSPC))
	}

	return nil
}

// tell records what is missing, and logs when the folder becomes full or has room again. The caller holds mu.
func (w *Watch) tell(missing string) {
	before := w.full
	w.full = missing

	attributes := []any{"folder", w.config.Dir, "free_bytes", w.seen.freeBytes, "free_inodes", w.seen.freeInodes}

	switch {
	case before == "" && missing != "":
		w.config.Log.Error("the work folder is full", append(attributes, "missing", missing)...)
	case before != "" && missing == "":
		w.config.Log.Info("the work folder has free space again", attributes...)
	}
}

// Writer returns a writer to a file in the folder. When the disk is full, the writer removes cached files, and fails
// only when none is left.
func (w *Watch) Writer(file io.Writer) io.Writer { return writer{watch: w, file: file} }

type writer struct {
	watch *Watch
	file  io.Writer
}

func (x writer) Write(p []byte) (n int, err error) {
	for {
		var more int

		more, err = x.file.Write(p[n:])
		n += more

		if err == nil || !fault.IsNoRoom(err) || x.watch == nil || !x.watch.evict() {
			return n, err
		}
	}
}

// State is the result of the last check.
type State struct {
	FreeBytes, FreeInodes int64
	Full                  bool
	Problem               string // description for operators if the folder is full
}

// State returns the result of the last check.
func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()

	state := State{FreeBytes: w.seen.freeBytes, FreeInodes: w.seen.freeInodes, Full: w.full != ""}

	switch w.full {
	case space:
		state.Problem = fmt.Sprintf("the work folder %s has too little space: %d bytes are free, the minimum is %d", w.config.Dir, w.seen.freeBytes, w.keptBytes())
	case inodes:
		state.Problem = fmt.Sprintf("the work folder %s has too few inodes: %d are free, the minimum is %d", w.config.Dir, w.seen.freeInodes, w.keptInodes())
	}

	return state
}
