package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Program is what a child can be.
type Program struct {
	// Prepare runs before the child is sealed and before anything of a user is near: it opens what needs
	// the rest of the machine, and makes the folders that it wants in tmp/.
	Prepare func(Folder) (Serve, error)
}

// Serve does one job in the sealed child. When it returns, Data is closed and the parent learns the error.
type Serve func(*Conn) error

// Conn is the child's side of the talk with its parent.
type Conn struct {
	Folder

	Data io.Writer // bulk results

	out      sync.Mutex
	control  io.Writer
	messages chan []byte
}

// Receive gets the next message of the parent.
func (c *Conn) Receive(into any) error { return json.Unmarshal(<-c.messages, into) }

// Send sends a message to the parent. Any goroutine may call it.
func (c *Conn) Send(message any) error { return c.send(kindMessage, message) }

func (c *Conn) send(k kind, message any) error {
	c.out.Lock()
	defer c.out.Unlock()

	return writeFrame(c.control, k, message)
}

const probeProgram = "probe"

// The descriptors of a child, after /dev/null and twice the log.
const (
	fdControlIn = iota + 3
	fdControlOut
	fdData
	fdFirstForeign
)

// Main is the child: `quernd sandbox <program>`. It returns the exit code, if it is not killed before.
func Main(args []string, programs map[string]Program) int {
	if err := child(args, programs); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)

		return 1
	}

	return 0
}

func child(args []string, programs map[string]Program) error {
	if len(args) != 1 {
		return errors.New("this command is for the server, which starts it by itself")
	}

	closeForeign()
	unix.Umask(0o077)

	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("no core dumps: %w", err)
	}

	// If the machine runs out of memory a child goes before the server does.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("the order of the out-of-memory killer: %w", err)
	}

	data := os.NewFile(fdData, "data")
	conn := &Conn{Data: data, control: os.NewFile(fdControlOut, "control"), messages: make(chan []byte, 16)}

	go conn.listen(os.NewFile(fdControlIn, "control"))

	var what setup
	if err := conn.Receive(&what); err != nil {
		return fmt.Errorf("the setup: %w", err)
	}

	conn.Folder = what.Folder

	reached, serve, err := become(args[0], programs, what)
	if err != nil {
		return errors.Join(err, conn.send(kindReady, outcome{Error: err.Error()}))
	}

	if err := conn.send(kindReady, outcome{Landlock: reached.Landlock, Seccomp: reached.Seccomp}); err != nil {
		return err
	}

	var end outcome
	if err := serve(conn); err != nil {
		end.Error = shorten(err.Error())
	}

	if err := errors.Join(data.Close(), conn.send(kindEnd, end)); err != nil {
		return err
	}

	select {} // The parent kills it, and can look at it until then.
}

// become prepares and seals.
func become(name string, programs map[string]Program, what setup) (seal, Serve, error) {
	if name == probeProgram {
		return bestSeal(what.Seal, what.Folder), func(*Conn) error { return nil }, nil
	}

	program, known := programs[name]
	if !known {
		return seal{}, nil, fmt.Errorf("there is no program %q", name)
	}

	serve, err := program.Prepare(what.Folder)
	if err != nil {
		return seal{}, nil, fmt.Errorf("preparing: %w", err)
	}

	return what.Seal, serve, what.Seal.apply(what.Folder)
}

// listen hands over what the parent says, and reads ahead of the program: when the pipe ends the parent is gone,
// and so is the child.
func (c *Conn) listen(control io.Reader) {
	for {
		_, payload, err := readFrame(control)
		if err != nil {
			os.Exit(1)
		}

		c.messages <- payload
	}
}

// closeForeign closes descriptors that somebody in the parent left open for children. Those of the runtime,
// which have no name in a file system, stay.
func closeForeign() {
	const folder = "/proc/self/fd"

	// The runtime has descriptors for the limits of its cgroup, too, and reads them every second unless somebody has set the number.
	// Once they are closed it would read what is opened next, and crash on what is no number.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))

	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}

	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < fdFirstForeign {
			continue
		}

		target, err := os.Readlink(filepath.Join(folder, entry.Name()))
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			_ = unix.Close(fd)
		}
	}
}

func shorten(text string) string {
	const longest = 8 << 10

	return text[:min(len(text), longest)]
}
