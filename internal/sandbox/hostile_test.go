package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

// job says what a hostile child tries.
type job struct {
	Do      string
	Path    string
	Address string
	Pid     int
	Victim  int
}

// report contains what the child got. Err is empty if the attempt worked.
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

// forked forks without the Go runtime; the new process exits at once.
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

// signalByPipe makes another process the owner of a pipe's signals, and then makes the pipe readable.
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

// fill writes a file. An unlinked file stays open.
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

// descriptors lists the open descriptors that have a file type. Those of the runtime have none.
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

// raw writes to the control pipe directly, and then blocks.
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
