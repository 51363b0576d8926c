package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

// nuisances do not reach outside: they waste resources, violate the protocol, or stop.
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

			for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); { // stay busy: the runtime's monitor sleeps with the process
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
			// The process runs in its own session, so killing the process group of the child does not end it. It also keeps
			// all pipes of the child open.
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
