// Package backup keeps a backup of an installation in a folder: a dump of the database, and the objects that the dump lists.
//
//	Open ──▶ Record (dump, list of objects) ──▶ Fetch (objects) ──▶ complete ──▶ Each (objects, for a restore)
//
// Invariants:
//   - The dump and the list of objects are of one state of the database.
//   - backup.json exists only beside a complete dump and a complete list. Its field completedAt is set only when every object of the list is
//     in the folder, or was missing in the store.
//   - Objects are copied in the order of the list, a batch at a time. A batch is recorded as copied only after its objects
//     are on disk. If the process dies, the next one continues after the last recorded batch.
//   - Only the owner can read the folder: it has everything that the installation has.
//
// Faults: Conflict, NotFound.
package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"quern.dev/quern/internal/fault"
)

const (
	format = 1

	aboutFile   = "backup.json"
	dumpFile    = "database.dump"
	listFile    = "objects.list"   // what the database lists
	copiedFile  = "objects.copied" // what is in the folder, in the order of the list
	lockFile    = "lock"
	objectsPath = "objects"

	unfinished = ".partial"

	folderMode = 0o700
	fileMode   = 0o600
)

// About describes a backup.
type About struct {
	Format      int        `json:"format"`
	ID          string     `json:"id"`
	Deployment  string     `json:"deployment"`
	Location    string     `json:"location"` // prefix of the addresses of all objects
	TakenAt     time.Time  `json:"takenAt"`  // the moment that the database and the objects show
	DumpSHA256  string     `json:"dumpSha256"`
	Objects     int64      `json:"objects"`
	Bytes       int64      `json:"bytes"`
	Removed     int64      `json:"removed"` // objects that the installation removed while the backup was taken
	Lost        int64      `json:"lost"`    // objects that were missing before
	CompletedAt *time.Time `json:"completedAt"`
}

// Folder is a folder with a backup. The caller must close it.
type Folder struct {
	path  string
	lock  *os.File
	about About // empty before Record
}

// Open opens a folder for a backup, and creates it if create is set.
//
// Faults: Conflict if another process uses the folder, or if it has something else.
func Open(path string, create bool) (*Folder, error) {
	if create {
		if err := os.MkdirAll(path, folderMode); err != nil {
			return nil, err
		}
	}

	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}

	if _, err := os.Stat(filepath.Join(path, lockFile)); len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Conflict, path+" is not empty and has no backup: name a new folder.")
	}

	if create {
		if err := os.Chmod(path, folderMode); err != nil {
			return nil, err
		}
	}

	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}

	f := &Folder{path: path, lock: lock}

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fault.New(fault.Conflict, "Another process uses "+path+"."), f.Close())
	}

	if err := f.readAbout(); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// Close lets other processes use the folder.
func (f *Folder) Close() error { return f.lock.Close() }

// About returns the description of the backup; without an id before Record.
func (f *Folder) About() About { return f.about }

// Complete reports whether the backup can be restored.
func (f *Folder) Complete() bool { return f.about.CompletedAt != nil }

// Dump returns the path of the dump.
func (f *Folder) Dump() string { return f.join(dumpFile) }

func (f *Folder) join(name string) string { return filepath.Join(f.path, name) }

func (f *Folder) readAbout() error {
	content, err := os.ReadFile(f.join(aboutFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return err
	}

	if err := json.Unmarshal(content, &f.about); err != nil {
		return fmt.Errorf("%s: %w", f.join(aboutFile), err)
	}

	if f.about.Format != format {
		return fault.New(fault.Conflict, fmt.Sprintf("%s has the format %d, and this program knows the format %d: use the release that made the backup, or a newer one.",
			f.path, f.about.Format, format))
	}

	return nil
}

// writeAbout replaces the description, after everything before is on disk.
func (f *Folder) writeAbout(about About) error {
	content, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}

	err = f.write(aboutFile, func(to io.Writer) error {
		_, err := to.Write(append(content, '\n'))

		return err
	})
	if err == nil {
		f.about = about
	}

	return err
}

// write writes a file completely or not at all.
func (f *Folder) write(name string, fill func(to io.Writer) error) error {
	path := f.join(name)

	file, err := os.OpenFile(path+unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}

	if err := errors.Join(fill(file), file.Sync(), file.Close()); err != nil {
		return err
	}

	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}

	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}

	return errors.Join(folder.Sync(), folder.Close())
}

// Record writes the dump and the list of objects, and begins the backup with them. list calls its argument for each object.
func (f *Folder) Record(about About, list func(add func(key string, size int64) error) error, dump func(to io.Writer) error) error {
	about.Format = format

	if err := f.write(listFile, func(to io.Writer) error {
		lines := json.NewEncoder(to)

		return list(func(key string, size int64) error {
			about.Objects++
			about.Bytes += size

			return lines.Encode(Object{Key: key, Size: size})
		})
	}); err != nil {
		return err
	}

	sum := sha256.New()

	if err := f.write(dumpFile, func(to io.Writer) error { return dump(io.MultiWriter(to, sum)) }); err != nil {
		return err
	}

	about.DumpSHA256 = hex.EncodeToString(sum.Sum(nil))

	return f.writeAbout(about)
}

// CheckDump reads the dump and fails if it is not the one that was written.
func (f *Folder) CheckDump() error {
	file, err := os.Open(f.Dump())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()

	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}

	if hex.EncodeToString(sum.Sum(nil)) != f.about.DumpSHA256 {
		return damaged(f.Dump())
	}

	return nil
}

func damaged(path string) error {
	return fault.New(fault.Conflict, path+" differs from what the backup wrote: use another copy of the backup.")
}
