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

// Program is a program that a child can run.
type Program struct {
	// Prepare runs before the child is sealed and before any data of users is available. It opens everything that needs
	// access to the rest of the machine, and creates the folders that the program needs in tmp/.
	Prepare func(Folder) (Serve, error)
}

// Serve does one job in the sealed child. When it returns, Data is closed and the error is sent to the parent.
type Serve func(*Conn) error

// Conn is the child's side of the connection to its parent.
type Conn struct {
	Folder

	Data io.Writer // bulk results

	out      sync.Mutex
	control  io.Writer
	messages chan []byte
}

// Receive receives the next message of the parent.
func (c *Conn) Receive(into any) error { return json.Unmarshal(<-c.messages, into) }

// Send sends a message to the parent. It may be called by any goroutine.
func (c *Conn) Send(message any) error { return c.send(kindMessage, message) }

func (c *Conn) send(k kind, message any) error {
	c.out.Lock()
	defer c.out.Unlock()

	return writeFrame(c.control, k, message)
}

const probeProgram = "probe"

// The descriptors of a child after 0 (/dev/null), 1 and 2 (both the log).
const (
	fdControlIn = iota + 3
	fdControlOut
	fdData
	fdBinary // the file that is executed, which the child closes

	fdFirstForeign = fdBinary
)

// Name is the name of a child as it sees it itself, and as lists of processes show it.
const Name = "quern-engine"

// Main runs the child: `quern-engine <program>`. It returns the exit code, unless the child is killed before.
func Main(args []string, version string, programs map[string]Program) int {
	if err := child(args, version, programs); err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", Name, version, err)

		return 1
	}

	return 0
}

func child(args []string, version string, programs map[string]Program) error {
	var control unix.Stat_t
	if err := unix.Fstat(fdControlIn, &control); err != nil || control.Mode&unix.S_IFMT != unix.S_IFIFO || len(args) != 1 {
		return errors.New("quernd starts this program when needed; it has no commands")
	}

	closeForeign()
	unix.Umask(0o077)

	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("disabling core dumps: %w", err)
	}

	// If the machine runs out of memory, the kernel must kill a child before the server.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("setting the priority of the out-of-memory killer: %w", err)
	}

	// The kernel names a process after the path that was executed, which is the one of a descriptor.
	if err := os.WriteFile("/proc/self/comm", []byte(Name), 0); err != nil {
		return fmt.Errorf("naming the process: %w", err)
	}

	data := os.NewFile(fdData, "data")
	conn := &Conn{Data: data, control: os.NewFile(fdControlOut, "control"), messages: make(chan []byte, 16)}

	go conn.listen(os.NewFile(fdControlIn, "control"))

	var what setup
	if err := conn.Receive(&what); err != nil {
		return fmt.Errorf("reading the setup: %w", err)
	}

	conn.Folder = what.Folder

	reached, serve, err := become(args[0], programs, what)
	if err != nil {
		return errors.Join(err, conn.send(kindReady, outcome{Version: version, Error: err.Error()}))
	}

	if err := conn.send(kindReady, outcome{Version: version, Landlock: reached.Landlock, Seccomp: reached.Seccomp}); err != nil {
		return err
	}

	var end outcome
	if err := serve(conn); err != nil {
		end.Error = shorten(err.Error())
	}

	if err := errors.Join(data.Close(), conn.send(kindEnd, end)); err != nil {
		return err
	}

	select {} // The parent kills the child, and can inspect it until then.
}

// become prepares the program and seals the process.
func become(name string, programs map[string]Program, what setup) (seal, Serve, error) {
	if name == probeProgram {
		return bestSeal(what.Seal, what.Folder), func(*Conn) error { return nil }, nil
	}

	program, known := programs[name]
	if !known {
		return seal{}, nil, fmt.Errorf("unknown program %q", name)
	}

	serve, err := program.Prepare(what.Folder)
	if err != nil {
		return seal{}, nil, fmt.Errorf("preparing: %w", err)
	}

	return what.Seal, serve, what.Seal.apply(what.Folder)
}

// listen forwards the messages of the parent to the program. It reads ahead of the program: when the pipe ends, the
// parent is dead, and the child exits.
func (c *Conn) listen(control io.Reader) {
	for {
		_, payload, err := readFrame(control)
		if err != nil {
			os.Exit(1)
		}

		c.messages <- payload
	}
}

// closeForeign closes descriptors that the parent left open for children, and the one of the executed file. Descriptors of the runtime, which have no
// name in a file system, stay open.
func closeForeign() {
	const folder = "/proc/self/fd"

	// The runtime also has descriptors for the limits of its cgroup. It reads them every second, unless the number of
	// processors was set explicitly. After these descriptors are closed, the runtime would read the file that is opened
	// next, and crash if it does not contain a number.
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
