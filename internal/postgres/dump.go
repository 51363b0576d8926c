package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"quern.dev/quern/internal/fault"
)

// Dump writes a dump of the database with pg_dump, in its custom format. state is the id of the state that Frozen returned.
func Dump(ctx context.Context, address, state string, to io.Writer) error {
	return run(ctx, address, to, "pg_dump", "--format=custom", "--no-password", "--snapshot="+state)
}

// Undump writes the dump into the database with pg_restore, completely or not at all. The role of the address owns everything.
func Undump(ctx context.Context, address, path string) error {
	return run(ctx, address, nil, "pg_restore", "--no-password", "--no-owner", "--no-acl", "--single-transaction", "--exit-on-error", path)
}

// run runs a program of PostgreSQL. The program ends with this process. Only its environment has the password.
func run(ctx context.Context, address string, to io.Writer, program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, program+" was not found: install the client programs of PostgreSQL, in a version that is at least that of the server.")
	}

	address, password, err := withoutPassword(address)
	if err != nil {
		return err
	}

	environment := []string{"PGPASSWORD=" + password}

	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "QUERN_") && (password == "" || !strings.HasPrefix(variable, "PGPASSWORD=")) {
			environment = append(environment, variable)
		}
	}

	if password == "" {
		environment = environment[1:]
	}

	var said strings.Builder

	command := exec.CommandContext(ctx, path, append([]string{"--dbname=" + address}, args...)...)
	command.Env, command.Stdout, command.Stderr = environment, to, &said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	// Linux sends the signal when the thread ends that started the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}

		return fmt.Errorf("%s: %w\n%s", program, err, strings.TrimSpace(said.String()))
	}

	return nil
}

// withoutPassword returns the address as the programs of PostgreSQL read it, and the password, which other users of the machine could
// read among the arguments.
func withoutPassword(address string) (rest, password string, err error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "", "", errBadAddress
	}

	if u.User != nil {
		password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
	}

	parameters := u.Query()
	if parameters.Has("sslpassword") {
		return "", "", errors.New("an address with sslpassword cannot be used for a backup: use a key file without a password")
	}

	if parameters.Has("password") {
		password = parameters.Get("password")
	}

	for name := range parameters {
		if name == "password" || strings.HasPrefix(name, "pool_") {
			parameters.Del(name)
		}
	}

	u.RawQuery = strings.ReplaceAll(parameters.Encode(), "+", "%20") // PostgreSQL does not read + as a space

	return u.String(), password, nil
}

// Note returns the comment of the database, and SetNoteTx sets it. It says that a restore into this database has begun.
func (db *DB) Note(ctx context.Context) (note string, err error) {
	return note, db.Do(ctx, func(q Querier) error { return q.QueryRow(ctx, sqlNoteRead).Scan(&note) })
}

// SetNoteTx sets the comment of the database; an empty text removes it.
func SetNoteTx(ctx context.Context, tx Tx, note string) error {
	var statement string
	if err := tx.QueryRow(ctx, sqlNoteText, note).Scan(&statement); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, statement)

	return err
}

// IsEmpty reports whether the database has no tables.
func (db *DB) IsEmpty(ctx context.Context) (empty bool, err error) {
	return empty, db.Do(ctx, func(q Querier) error { return q.QueryRow(ctx, sqlIsEmpty).Scan(&empty) })
}

// RenameTx makes the database a deployment of its own, which no location belongs to before it is claimed.
func RenameTx(ctx context.Context, tx Tx, deployment string) error {
	if _, err := tx.Exec(ctx, sqlRename, deployment); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlUnmark)

	return err
}
