package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlocks are the rule sets by ABI, from 1.
func landlocks() []landlock.Config {
	return []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
		landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
	}
}

func newestLandlock() int { return len(landlocks()) }

// apply seals the process for ever, all its threads and those to come. It is an error if the seal does not hold.
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

// check tries what must not work.
func (s seal) check() error {
	if s.Landlock > 0 {
		if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EACCES) {
			_ = unix.Close(fd)

			return fmt.Errorf("landlock does not hold: %w", err)
		}
	}

	if s.Seccomp {
		if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); !errors.Is(err, unix.EPERM) {
			_ = unix.Close(fd)

			return fmt.Errorf("seccomp does not hold: %w", err)
		}
	}

	return nil
}

// bestSeal applies the most of the wish that the kernel accepts and says what that was.
func bestSeal(wish seal, folder Folder) seal {
	var reached seal

	newest, err := ll.LandlockGetABIVersion()
	if err != nil {
		newest = 0
	}

	// A kernel may count an ABI that the library, knowing its errors, does not accept.
	for abi := min(wish.Landlock, newest); abi > 0 && reached.Landlock == 0; abi-- {
		if (seal{Landlock: abi}).apply(folder) == nil {
			reached.Landlock = abi
		}
	}

	reached.Seccomp = wish.Seccomp && seal{Seccomp: true}.apply(folder) == nil

	return reached
}

// restrict lets the process read in/, and read, write, make and remove plain files in tmp/: no folders, no links,
// no devices, nothing to execute, and moves only within a folder.
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
