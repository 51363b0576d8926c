package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

// job tells a hostile child what to try.
type job struct {
	Do      string
	Path    string
	Address string
	Pid     int
	Victim  int
}

// report says what it got. Err is empty if the attempt worked.
type report struct {
	Got string
	Err string
}

func hostile(conn *sandbox.Conn) error {
	var what job
	if err := conn.Receive(&what); err != nil {
		return err
	}

	for _, list := range []map[string]func(*sandbox.Conn, job) (string, error){escapes(), nuisances()} {
		if do, known := list[what.Do]; known {
			got, err := do(conn, what)

			said := report{Got: got}
			if err != nil {
				said.Err = err.Error()
			}

			return conn.Send(said)
		}
	}

	return fmt.Errorf("what is %q?", what.Do)
}

// escapes reach for something outside. Each is tried sealed and, as the positive control, free.
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
					runtime.LockOSThread() // the thread ends with the goroutine, so each has its own

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
					return "", nil // one is enough
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
		// The number of an allowed call in the place where the library's filter would compare it.
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
			if errors.Is(err, unix.EPERM) { // the leader of a group may not anyway, and says so with the same number
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

// nuisances do not reach outside; they waste, lie, or stop.
func nuisances() map[string]func(*sandbox.Conn, job) (string, error) {
	return map[string]func(*sandbox.Conn, job) (string, error){
		"behave": func(conn *sandbox.Conn, _ job) (string, error) {
			given, err := read(filepath.Join(conn.In, "given"))
			if err != nil {
				return "", err
			}

			if err := os.WriteFile(filepath.Join(conn.Tmp, "made.part"), []byte(strings.ToUpper(given)), 0o600); err != nil {
				return "", err
			}

			_, err = conn.Data.Write(bytes.Repeat([]byte("x"), 1<<20))

			return given, errors.Join(err, os.Rename(filepath.Join(conn.Tmp, "made.part"), filepath.Join(conn.Tmp, "made")))
		},
		"tell its environment": func(*sandbox.Conn, job) (string, error) { return strings.Join(os.Environ(), "\n"), nil },
		"tell its descriptors": func(*sandbox.Conn, job) (string, error) { return descriptors(), nil },
		"hold files open": func(conn *sandbox.Conn, _ job) (string, error) {
			path := filepath.Join(conn.Tmp, "held")
			if err := os.WriteFile(path, []byte(strings.Repeat("x", 40)+" \n"), 0o600); err != nil {
				return "", err
			}

			for range 8 {
				file, err := os.Open(path)
				if err != nil {
					return "", err
				}
				defer file.Close()
			}

			for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); { // the runtime's own watch sleeps with a process that does
				runtime.Gosched()
			}

			return "", nil
		},
		"silence": func(*sandbox.Conn, job) (string, error) { time.Sleep(time.Hour); return "", nil },
		"spin": func(*sandbox.Conn, job) (string, error) {
			for i := 0; ; i++ {
				runtime.KeepAlive(i)
			}
		},
		"exit": func(*sandbox.Conn, job) (string, error) { os.Exit(0); return "", nil },
		"crash": func(*sandbox.Conn, job) (string, error) {
			return "", unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGKILL)
		},
		"eat memory": func(*sandbox.Conn, job) (string, error) {
			var kept [][]byte

			for {
				block := make([]byte, 16<<20)
				for i := range len(block) / 4096 {
					block[i*4096] = 1
				}

				kept = append(kept, block)
				runtime.KeepAlive(kept)
			}
		},
		"eat threads": func(*sandbox.Conn, job) (string, error) {
			for range 5000 {
				go func() {
					runtime.LockOSThread()
					select {}
				}()
			}

			select {}
		},
		"write one big file": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", fill(filepath.Join(conn.Tmp, "big"), 1<<40, false)
		},
		"write many files": func(conn *sandbox.Conn, _ job) (string, error) {
			for i := 0; ; i++ {
				if err := fill(filepath.Join(conn.Tmp, strconv.Itoa(i)), 4<<20, false); err != nil {
					return "", err
				}
			}
		},
		"write many empty files": func(conn *sandbox.Conn, _ job) (string, error) {
			for i := 0; ; i++ {
				if err := fill(filepath.Join(conn.Tmp, strconv.Itoa(i)), 0, false); err != nil {
					return "", err
				}
			}
		},
		"write files without a name": func(conn *sandbox.Conn, _ job) (string, error) {
			for i := range 30 {
				if err := fill(filepath.Join(conn.Tmp, strconv.Itoa(i)), 4<<20, true); err != nil {
					return "", err
				}
			}

			select {}
		},
		"remove its folder": func(conn *sandbox.Conn, _ job) (string, error) {
			_ = os.RemoveAll(conn.Tmp)
			_ = os.RemoveAll(conn.In)

			return "", os.RemoveAll(filepath.Dir(conn.In))
		},
		"nest folders": func(conn *sandbox.Conn, _ job) (string, error) {
			return "", os.MkdirAll(conn.Tmp+strings.Repeat("/d", 1500), 0o700)
		},
		"fill the log": func(*sandbox.Conn, job) (string, error) {
			for range 10_000 {
				fmt.Fprint(os.Stderr, strings.Repeat("noise ", 200))
				fmt.Fprint(os.Stdout, strings.Repeat("noise ", 200))
			}

			return "still here", nil
		},
		"flood with frames": func(conn *sandbox.Conn, _ job) (string, error) {
			for {
				if err := conn.Send(report{Got: "again"}); err != nil {
					return "", err
				}
			}
		},
		"flood with big frames": func(_ *sandbox.Conn, _ job) (string, error) {
			return raw(bytes.Repeat(frame('m', `{"Got":"`+strings.Repeat("x", 8<<20)+`"}`), 6))
		},
		"flood with data": func(conn *sandbox.Conn, _ job) (string, error) {
			for {
				if _, err := conn.Data.Write(make([]byte, 1<<20)); err != nil {
					return "", err
				}
			}
		},
		"claim a long frame": func(*sandbox.Conn, job) (string, error) {
			return raw(binary.BigEndian.AppendUint32([]byte("m"), 1<<31))
		},
		"claim more than it sends": func(*sandbox.Conn, job) (string, error) {
			return raw(append(binary.BigEndian.AppendUint32([]byte("m"), 1<<20), `{"Got":"`...))
		},
		"send half a frame and exit": func(*sandbox.Conn, job) (string, error) {
			_, _ = unix.Write(4, append(binary.BigEndian.AppendUint32([]byte("m"), 1<<20), `{"Got":"`...))
			os.Exit(0)

			return "", nil
		},
		"talk rubbish":      func(*sandbox.Conn, job) (string, error) { return raw(bytes.Repeat([]byte("\xff\x00rubbish"), 1000)) },
		"send no JSON":      func(*sandbox.Conn, job) (string, error) { return raw([]byte("m\x00\x00\x00\x03{]}")) },
		"nest JSON":         func(*sandbox.Conn, job) (string, error) { return raw(frame('m', strings.Repeat("[", 1<<20))) },
		"send another type": func(*sandbox.Conn, job) (string, error) { return raw(frame('m', `[1,2]`)) },
		"be ready again":    func(*sandbox.Conn, job) (string, error) { return raw(frame('r', `{}`)) },
		"end with rubbish":  func(*sandbox.Conn, job) (string, error) { return raw(frame('e', `rubbish`)) },
		"close its pipes":   func(*sandbox.Conn, job) (string, error) { _, _ = unix.Close(4), unix.Close(5); select {} },
		"signal itself to stop": func(*sandbox.Conn, job) (string, error) {
			_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
			select {}
		},
		"leave a grandchild": func(*sandbox.Conn, job) (string, error) {
			// Started in its own session, with all pipes of the child: it survives the kill of the group.
			cmd := exec.CommandContext(context.Background(), "/bin/sleep", "20")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			cmd.ExtraFiles = []*os.File{os.NewFile(4, "control"), os.NewFile(5, "data")}

			if err := cmd.Start(); err != nil {
				return "", err
			}

			os.Exit(0)

			return "", nil
		},
		"make bait": func(conn *sandbox.Conn, j job) (string, error) {
			return "", errors.Join(
				os.WriteFile(filepath.Join(conn.Tmp, "plain"), []byte("plain"), 0o600),
				os.Symlink(j.Path, filepath.Join(conn.Tmp, "symlink")),
				os.Link(j.Path, filepath.Join(conn.Tmp, "hardlink")),
				unix.Mkfifo(filepath.Join(conn.Tmp, "fifo"), 0o600),
				os.Symlink(filepath.Dir(j.Path), filepath.Join(conn.Tmp, "folder")),
				os.Mkdir(filepath.Join(conn.Tmp, "real"), 0o700),
				os.WriteFile(filepath.Join(conn.Tmp, "real", "nested"), []byte("nested"), 0o600),
			)
		},
	}
}

func read(path string) (string, error) {
	content, err := os.ReadFile(path)

	return string(content), err
}

func dial(network, address string) (string, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), network, address)
	if err != nil {
		return "", err
	}

	_, err = conn.Write([]byte("reached"))

	return "", errors.Join(err, conn.Close())
}

// forked forks without the runtime's knowledge; the new process does nothing but end.
func forked(call uintptr, args ...uintptr) (string, error) {
	var all [6]uintptr
	copy(all[:], args)

	pid, _, errno := unix.RawSyscall6(call, all[0], all[1], all[2], all[3], all[4], all[5])
	if errno != 0 {
		return "", errno
	}

	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}

	return fmt.Sprint(pid), nil
}

// signalByPipe makes another process the owner of a pipe's signals, and the pipe readable.
func signalByPipe(pid int) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK); err != nil {
		return err
	}

	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETSIG, int(unix.SIGUSR1)); err != nil {
		return err
	}

	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETOWN, pid); err != nil {
		return err
	}

	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
		return err
	}

	_, err := unix.Write(pipe[1], []byte("x"))

	return err
}

// fill writes a file. One without a name stays open.
func fill(path string, size int64, unlink bool) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	if unlink {
		if err := unix.Unlink(path); err != nil {
			return err
		}
	}

	for block := make([]byte, min(size, 1<<20)); size > 0; {
		n, err := unix.Write(fd, block)
		if err != nil {
			return err
		}

		size -= int64(n)
	}

	if unlink {
		return nil
	}

	return unix.Close(fd)
}

// descriptors lists those that are open and have a kind of file: the runtime's own have none.
func descriptors() string {
	var list []string

	for fd := range 1024 {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT != 0 {
			list = append(list, strconv.Itoa(fd))
		}
	}

	return strings.Join(list, " ")
}

func frame(kind byte, payload string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload))), payload...)
}

// raw writes to the control pipe behind the package's back, and stays.
func raw(content []byte) (string, error) {
	for len(content) > 0 {
		n, err := unix.Write(4, content)
		if err != nil {
			return "", err
		}

		content = content[n:]
	}

	select {}
}
