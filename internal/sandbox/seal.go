package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlocks returns the rule sets by ABI, starting with ABI 1.
func landlocks() []landlock.Config {
	return []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
		landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
	}
}

func newestLandlock() int { return len(landlocks()) }

// apply seals the process permanently, including all current and future threads. It fails if the seal has no effect.
func (s seal) apply(folder Folder) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if s.Landlock > 0 {
		if err := restrict(landlocks()[s.Landlock-1], folder); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}

	if s.Seccomp {
		if err := filter(); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}

	return s.check()
}

// check tries operations that the seal must prevent.
func (s seal) check() error {
	if s.Landlock > 0 {
		if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EACCES) {
			_ = unix.Close(fd)

			return fmt.Errorf("landlock has no effect: %v", err) //nolint:errorlint // nil if the call succeeded
		}
	}

	if s.Seccomp {
		if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); !errors.Is(err, unix.EPERM) {
			_ = unix.Close(fd)

			return fmt.Errorf("seccomp has no effect: %v", err) //nolint:errorlint // nil if the call succeeded
		}
	}

	return nil
}

// bestSeal applies as much of the requested seal as the kernel accepts, and returns what it applied.
func bestSeal(wish seal, folder Folder) seal {
	var reached seal

	newest, err := ll.LandlockGetABIVersion()
	if err != nil {
		newest = 0
	}

	// A kernel may report an ABI that the library does not accept because of known errors.
	for abi := min(wish.Landlock, newest); abi > 0 && reached.Landlock == 0; abi-- {
		if (seal{Landlock: abi}).apply(folder) == nil {
			reached.Landlock = abi
		}
	}

	reached.Seccomp = wish.Seccomp && seal{Seccomp: true}.apply(folder) == nil

	return reached
}

// restrict allows the process to read in/, and to read, write, create and remove plain files in tmp/. It cannot create
// folders, links or devices, cannot execute files, and can move files only within a folder.
func restrict(config landlock.Config, folder Folder) error {
	const (
		read  = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSReadDir)
		write = read | landlock.AccessFSSet(ll.AccessFSWriteFile|ll.AccessFSTruncate|ll.AccessFSMakeReg|ll.AccessFSRemoveFile)
	)

	return config.Restrict(
		landlock.PathAccess(read, folder.In),
		landlock.PathAccess(write&config.HandledAccessFS, folder.Tmp),
	)
}
