package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// Folder is where a job's files are: In holds what the parent linked, Tmp is the child's own.
type Folder struct {
	In  string `json:"in"`
	Tmp string `json:"tmp"`
}

// place is the folder of this parent, with one folder for each job. Its lock is held as long as the process
// lives, so the next process can tell what is left over.
type place struct {
	path string
	lock *os.File
}

func claim(dir string) (*place, error) {
	dir, err := filepath.Abs(dir) // children live in other folders
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}

	// Held while folders are made and removed, so that nobody takes a new one for a leftover.
	all, err := lock(filepath.Join(dir, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, err
	}

	defer all.Close()

	if err := sweep(dir); err != nil {
		return nil, err
	}

	p := &place{path: filepath.Join(dir, uuid.Must(uuid.NewV7()).String())}
	if err := os.Mkdir(p.path, 0o700); err != nil {
		return nil, err
	}

	p.lock, err = lock(filepath.Join(p.path, "lock"), unix.LOCK_EX|unix.LOCK_NB)

	return p, err
}

// sweep removes the folders of parents that are dead.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, entry := range entries {
		if _, err := uuid.Parse(entry.Name()); err != nil || !entry.IsDir() {
			continue // not ours
		}

		path := filepath.Join(dir, entry.Name())

		held, err := lock(filepath.Join(path, "lock"), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // its parent lives
		}

		if err != nil {
			return err
		}

		err = errors.Join(os.RemoveAll(path), held.Close())
		if err != nil {
			return err
		}
	}

	return nil
}

func lock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}

	if err := unix.Flock(int(file.Fd()), how); err != nil {
		return nil, errors.Join(err, file.Close())
	}

	return file, nil
}

func (p *place) remove() {
	_ = os.RemoveAll(p.path)
	_ = p.lock.Close()
}

// job makes the folder of a child.
func (p *place) job() (Folder, error) {
	path := filepath.Join(p.path, uuid.Must(uuid.NewV7()).String())
	folder := Folder{In: filepath.Join(path, "in"), Tmp: filepath.Join(path, "tmp")}

	for _, dir := range []string{path, folder.In, folder.Tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return Folder{}, fmt.Errorf("a job's folder: %w", err)
		}
	}

	return folder, nil
}

func removeFolder(folder Folder) { _ = os.RemoveAll(filepath.Dir(folder.In)) }

// Take ends the child and moves a file that it wrote in tmp/ to a new place on the same file system, read-only.
// Only a plain file with one name is taken, and what was checked is what is moved.
func (c *Child) Take(name, to string, limit int64) (int64, error) {
	c.sample()
	c.fail(errEnded)
	<-c.ended

	file, err := openBelow(c.folder.Tmp, name)
	if err != nil {
		return 0, fmt.Errorf("%w: taking %q: %w", ErrProtocol, name, err)
	}

	defer file.Close()

	fd := int(file.Fd())

	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, err
	}

	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG, stat.Nlink != 1:
		return 0, fmt.Errorf("%w: %q is not a plain file", ErrProtocol, name)
	case stat.Size > limit:
		return 0, fmt.Errorf("%w: %q has %d bytes", ErrOutput, name, stat.Size)
	}

	if err := unix.Fchmod(fd, 0o400); err != nil {
		return 0, err
	}

	// By descriptor: a name could have come to mean another file.
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return 0, fmt.Errorf("moving a file of the sandbox to %s: %w", to, err)
	}

	return stat.Size, os.Remove(filepath.Join(c.folder.Tmp, name))
}

// openBelow opens a file for reading without following a link at any step, and without waiting for a fifo.
func openBelow(dir, name string) (*os.File, error) {
	if !filepath.IsLocal(name) || name == "." {
		return nil, errors.New("not a name in the folder")
	}

	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

	fd, err := unix.Open(dir, flags|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}

	steps := strings.Split(filepath.Clean(name), "/")
	for i, step := range steps {
		how := flags
		if i < len(steps)-1 {
			how |= unix.O_DIRECTORY
		}

		next, err := unix.Openat(fd, step, how, 0)
		_ = unix.Close(fd)

		if err != nil {
			return nil, err
		}

		fd = next
	}

	return os.NewFile(uintptr(fd), name), nil
}
