package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

// escapes are attempts to reach something outside. Each is tried sealed and, as the positive control, unsealed.
func escapes() map[string]func(*sandbox.Conn, job) (string, error) {
	return map[string]func(*sandbox.Conn, job) (string, error){
		"read a file": func(_ *sandbox.Conn, j job) (string, error) { return read(j.Path) },
		"read from every thread": func(_ *sandbox.Conn, j job) (string, error) {
			type answer struct {
				got string
				err error
			}

			answers := make(chan answer)

			for range 16 {
				go func() {
					runtime.LockOSThread() // the thread ends with the goroutine, so each goroutine has its own

					got, err := read(j.Path)
					answers <- answer{got, err}
				}()
			}

			var first answer

			for range 16 {
				if got := <-answers; got.err == nil || first.err == nil {
					first = got
				}
			}

			return first.got, first.err
		},
		"list the root": func(*sandbox.Conn, job) (string, error) {
			_, err := os.ReadDir("/")

			return "", err
		},
		"list a folder of the system": func(*sandbox.Conn, job) (string, error) {
			var refused []error

			for _, folder := range []string{"/etc", "/usr", "/var", "/home", "/root", "/opt", "/srv", "/tmp", "/run", "/sys", "/dev"} {
				if _, err := os.ReadDir(folder); err == nil {
					return "", nil // one folder is sufficient
				} else if !errors.Is(err, os.ErrNotExist) {
					refused = append(refused, err)
				}
			}

			return "", errors.Join(refused...)
		},
		"read a file of the system": func(*sandbox.Conn, job) (string, error) {
			_, err := read("/etc/passwd")

			return "", err
		},
		"read by another name": func(_ *sandbox.Conn, j job) (string, error) { return read("/proc/self/root" + j.Path) },
		"read through the parent's link": func(conn *sandbox.Conn, _ job) (string, error) {
			return read(filepath.Join(conn.Tmp, "link"))
		},
		"make a symbolic link": func(conn *sandbox.Conn, j job) (string, error) {
			link := filepath.Join(conn.Tmp, "mine")
			if err := os.Symlink(j.Path, link); err != nil {
				return "", err
			}

			return read(link)
		},
		"make a hard link": func(conn *sandbox.Conn, j job) (string, error) {
			link := filepath.Join(conn.Tmp, "mine")
			if err := os.Link(j.Path, link); err != nil {
				return "", err
			}

			return read(link)
		},
		"make a folder": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", os.Mkdir(filepath.Join(conn.Tmp, "mine"), 0o700)
		},
		"make a fifo": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", unix.Mkfifo(filepath.Join(conn.Tmp, "mine"), 0o600)
		},
		"write a file": func(_ *sandbox.Conn, j job) (string, error) {
			return "", os.WriteFile(j.Path, []byte("changed"), 0o600)
		},
		"make a file": func(_ *sandbox.Conn, j job) (string, error) {
			return "", os.WriteFile(j.Path+".new", []byte("new"), 0o600)
		},
		"remove a file": func(_ *sandbox.Conn, j job) (string, error) { return "", os.Remove(j.Path) },
		"truncate a file that is opened for reading": func(_ *sandbox.Conn, j job) (string, error) {
			_, err := unix.Open(j.Path, unix.O_RDONLY|unix.O_TRUNC, 0)

			return "", err
		},
		"truncate a file that is opened for nothing": func(_ *sandbox.Conn, j job) (string, error) {
			_, err := unix.Open(j.Path, unix.O_ACCMODE|unix.O_TRUNC, 0)

			return "", err
		},
		"truncate by name": func(_ *sandbox.Conn, j job) (string, error) { return "", unix.Truncate(j.Path, 0) },
		"change a mode":    func(_ *sandbox.Conn, j job) (string, error) { return "", os.Chmod(j.Path, 0o777) },
		"change times": func(_ *sandbox.Conn, j job) (string, error) {
			return "", os.Chtimes(j.Path, time.Unix(1, 0), time.Unix(1, 0))
		},
		"write a linked file": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", os.WriteFile(filepath.Join(conn.In, "given"), []byte("changed"), 0o600)
		},
		"truncate a linked file": func(conn *sandbox.Conn, _ job) (string, error) {
			_, err := unix.Open(filepath.Join(conn.In, "given"), unix.O_RDONLY|unix.O_TRUNC, 0)

			return "", err
		},
		"move a linked file": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", os.Rename(filepath.Join(conn.In, "given"), filepath.Join(conn.Tmp, "mine"))
		},
		"change the mode of a linked file": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", os.Chmod(filepath.Join(conn.In, "given"), 0o777)
		},

		"connect by TCP":             func(_ *sandbox.Conn, j job) (string, error) { return dial("tcp", j.Address) },
		"send by UDP":                func(_ *sandbox.Conn, j job) (string, error) { return dial("udp", j.Address) },
		"connect to a unix socket":   func(_ *sandbox.Conn, j job) (string, error) { return dial("unix", j.Path+".socket") },
		"connect to an abstract one": func(_ *sandbox.Conn, j job) (string, error) { return dial("unix", "@"+j.Path) },
		"listen": func(*sandbox.Conn, job) (string, error) {
			listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
			if err != nil {
				return "", err
			}

			return "", listener.Close()
		},

		"run a program": func(_ *sandbox.Conn, j job) (string, error) {
			out, err := exec.CommandContext(context.Background(), "/bin/cat", j.Path).Output()

			return string(out), err
		},
		"become a program": func(_ *sandbox.Conn, j job) (string, error) {
			return "", unix.Exec("/bin/sh", []string{"sh", "-c", "echo reached >" + j.Path + ".new"}, nil)
		},
		"fork": func(*sandbox.Conn, job) (string, error) { return forked(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) },
		// The number of an allowed call, at the position where the library's filter would compare it.
		"fork with the number of an allowed call": func(*sandbox.Conn, job) (string, error) {
			return forked(unix.SYS_CLONE, unix.SYS_PREAD64)
		},
		"fork by clone3": func(*sandbox.Conn, job) (string, error) {
			args := [11]uint64{4: uint64(unix.SIGCHLD)}

			return forked(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), unsafe.Sizeof(args))
		},
		"make a namespace": func(*sandbox.Conn, job) (string, error) { return "", unix.Unshare(unix.CLONE_NEWNS) },

		"read the parent's environment": func(_ *sandbox.Conn, j job) (string, error) { return read(fmt.Sprintf("/proc/%d/environ", j.Pid)) },
		"signal the parent":             func(_ *sandbox.Conn, j job) (string, error) { return "", unix.Kill(j.Pid, unix.SIGUSR1) },
		"signal a thread of the parent": func(_ *sandbox.Conn, j job) (string, error) {
			return "", unix.Tgkill(j.Pid, j.Pid, unix.SIGUSR1)
		},
		"let the kernel signal the parent": func(_ *sandbox.Conn, j job) (string, error) { return "", signalByPipe(j.Pid) },
		"trace a process":                  func(_ *sandbox.Conn, j job) (string, error) { return "", unix.PtraceSeize(j.Victim) },
		"read the parent's memory": func(_ *sandbox.Conn, j job) (string, error) {
			return read(fmt.Sprintf("/proc/%d/maps", j.Pid))
		},
		"read the parent's limits": func(_ *sandbox.Conn, j job) (string, error) {
			var limit unix.Rlimit

			return "", unix.Prlimit(j.Pid, unix.RLIMIT_CORE, nil, &limit)
		},
		"set its own limits": func(*sandbox.Conn, job) (string, error) {
			return "", unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		},
		"leave its group": func(*sandbox.Conn, job) (string, error) {
			_, err := unix.Setsid()
			if errors.Is(err, unix.EPERM) { // a group leader always gets this error, so try another call
				err = unix.Setpgid(0, 0)
			}

			return "", err
		},
		"map memory that no limit counts": func(*sandbox.Conn, job) (string, error) {
			_, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)

			return "", err
		},
		"map memory as a stack": func(*sandbox.Conn, job) (string, error) {
			_, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_GROWSDOWN)

			return "", err
		},
		"make a file of memory": func(*sandbox.Conn, job) (string, error) {
			_, err := unix.MemfdCreate("mine", 0)

			return "", err
		},
	}
}
