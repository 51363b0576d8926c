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

// Folder contains the paths of a job's files: In contains the files that the parent mounted, Tmp belongs to the child.
type Folder struct {
	In  string `json:"in"`
	Tmp string `json:"tmp"`
}

// parentFolder is the folder of this parent, with one folder for each job. Its lock is held while the process lives, so
// that the next process can detect abandoned folders.
type parentFolder struct {
	path string
	lock *os.File
}

func claim(dir string) (*parentFolder, error) {
	dir, err := filepath.Abs(dir) // children run in other folders
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}

	// Held while folders are created and removed, so that no process takes a new folder for an abandoned one.
	all, err := lock(filepath.Join(dir, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, err
	}

	defer all.Close()

	if err := sweep(dir); err != nil {
		return nil, err
	}

	p := &parentFolder{path: filepath.Join(dir, uuid.Must(uuid.NewV7()).String())}
	if err := os.Mkdir(p.path, 0o700); err != nil {
		return nil, err
	}

	p.lock, err = lock(filepath.Join(p.path, "lock"), unix.LOCK_EX|unix.LOCK_NB)

	return p, err
}

// sweep removes the folders of dead parents.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, entry := range entries {
		if _, err := uuid.Parse(entry.Name()); err != nil || !entry.IsDir() {
			continue // not a folder of a sandbox
		}

		path := filepath.Join(dir, entry.Name())

		held, err := lock(filepath.Join(path, "lock"), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // its parent is alive
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

func (p *parentFolder) remove() {
	_ = os.RemoveAll(p.path)
	_ = p.lock.Close()
}

// job creates the folder of a child.
func (p *parentFolder) job() (Folder, error) {
	path := filepath.Join(p.path, uuid.Must(uuid.NewV7()).String())
	folder := Folder{In: filepath.Join(path, "in"), Tmp: filepath.Join(path, "tmp")}

	for _, dir := range []string{path, folder.In, folder.Tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return Folder{}, fmt.Errorf("creating the folder of a job: %w", err)
		}
	}

	return folder, nil
}

func removeFolder(folder Folder) { _ = os.RemoveAll(filepath.Dir(folder.In)) }

// Take ends the child and moves a file that it wrote in tmp/ to the path to on the same file system, read-only. It
// accepts only a plain file with one name. The file that is moved is the file that was checked.
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

	// Use the descriptor: the name could refer to another file by now.
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return 0, fmt.Errorf("moving a file of the sandbox to %s: %w", to, err)
	}

	return stat.Size, os.Remove(filepath.Join(c.folder.Tmp, name))
}

// Follow opens a file in tmp/ that the child is writing. It accepts only a plain file with one name. The child can still change the file,
// so the caller must treat the bytes as it treats everything that a child says.
func (c *Child) Follow(name string) (*os.File, error) {
	file, err := openBelow(c.folder.Tmp, name)
	if err != nil {
		return nil, err
	}

	if err := plainFile(file); err != nil {
		_ = file.Close()

		return nil, err
	}

	return file, nil
}

// plainFile returns an error unless the file is a plain file with one name.
func plainFile(file *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return err
	}

	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 1 {
		return fmt.Errorf("%w: %q is not a plain file", ErrProtocol, file.Name())
	}

	return nil
}

// openBelow opens a file for reading. It does not follow links at any step, and does not wait for a fifo.
func openBelow(dir, name string) (*os.File, error) {
	if !filepath.IsLocal(name) || name == "." {
		return nil, errors.New("the name is not in the folder")
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
