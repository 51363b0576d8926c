package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// screen is a terminal at which a program runs, with everything that the program wrote to it.
type screen struct {
	t    *testing.T
	keys *os.File

	lock sync.Mutex
	text strings.Builder
}

// openScreen opens a pseudo-terminal and returns it with the end that the program gets.
func openScreen(t *testing.T) (s *screen, program *os.File) {
	t.Helper()

	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = keys.Close() })

	control := func(request uintptr, value any) {
		var pointer unsafe.Pointer

		switch value := value.(type) {
		case *int32:
			pointer = unsafe.Pointer(value)
		case *[4]uint16:
			pointer = unsafe.Pointer(value)
		}

		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, keys.Fd(), request, uintptr(pointer))
		require.Zero(t, failed)
	}

	var number, unlocked int32

	control(syscall.TIOCSPTLCK, &unlocked)
	control(syscall.TIOCGPTN, &number)
	control(syscall.TIOCSWINSZ, &[4]uint16{40, 120})

	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)

	s = &screen{t: t, keys: keys}
	t.Cleanup(func() { t.Logf("the rest of the screen: %q", s.rest()) })

	go func() {
		buffer := make([]byte, 4096)

		for {
			n, err := keys.Read(buffer)
			s.lock.Lock()
			s.text.Write(buffer[:n])
			s.lock.Unlock()

			if err != nil {
				return
			}
		}
	}()

	return s, program
}

// shows waits until the screen has a text that it did not have before, and forgets what stands before it.
func (s *screen) shows(text string) {
	s.t.Helper()
	await(s.t, "the screen shows "+text, func() bool {
		s.lock.Lock()
		defer s.lock.Unlock()

		_, rest, found := strings.Cut(s.text.String(), text)
		if found {
			s.text.Reset()
			s.text.WriteString(rest)
		}

		return found
	})
}

func (s *screen) rest() string {
	s.lock.Lock()
	defer s.lock.Unlock()

	return s.text.String()
}

func (s *screen) types(keys string) {
	s.t.Helper()

	_, err := s.keys.WriteString(keys)
	require.NoError(s.t, err)
}

// TestSQLPrompt uses `quern sql` as a person does: statements over several lines, Tab, the history, commands, and Ctrl-C in a line and
// in a statement.
func TestSQLPrompt(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newFilled(t, s, "ada", value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "prompt"}`)))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	c := s.signedIn(t, d.bearer)
	at, program := openScreen(t)

	command := c.command("sql", "-n", d.namespace)
	command.Env = append(command.Env, "TERM=xterm", "NO_COLOR=1", "PAGER=")
	command.Stdin, command.Stdout, command.Stderr = program, program, program
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, command.Start())
	require.NoError(t, program.Close())

	prompt := d.namespace + "> "

	at.shows("Statements end with a semicolon.")
	at.shows(prompt)
	at.types("SELECT count(*)\r")
	at.shows("-> ")
	at.types("AS found_rows FROM orders;\r")
	at.shows("found_rows")
	at.shows("1 row in")
	at.shows(prompt)

	at.types("SELECT nosuch FROM orders;\r")
	at.shows("nosuch")
	at.shows(prompt)

	at.types("SELECT 'unfinished\x03")
	at.shows(prompt)
	at.types("SELECT 40 + 2 AS sum_of_two;\r")
	at.shows("42")
	at.shows(prompt)

	at.types("FROM orde\t")
	at.shows("orders")
	at.types(";\r")
	at.shows("1 row in")
	at.shows(prompt)

	at.types("\x1b[A") // the line before
	at.shows("FROM orders;")
	at.types("\r")
	at.shows("1 row in")
	at.shows(prompt)

	at.types(".tables\r")
	at.shows("orders")
	at.shows(prompt)
	at.types(".nosuch\r")
	at.shows("There is no command .nosuch. .help lists the commands.")
	at.shows(prompt)

	at.types("SELECT sum(a.range * b.range) AS long FROM range(1000000) a, range(1000000) b;\r")
	await(t, "the statement runs", func() bool { return s.gauge("quern_query_running") == 1 })
	at.types("\x03")
	at.shows("Cancelled.")
	at.shows(prompt)
	await(t, "the statement ends", func() bool { return s.gauge("quern_query_running") == 0 })

	at.types("\x04")
	require.NoError(t, command.Wait())

	kept, err := os.ReadFile(filepath.Join(c.home, "sql_history"))
	require.NoError(t, err)
	require.Contains(t, string(kept), "FROM orders;\n.tables\n")
}
