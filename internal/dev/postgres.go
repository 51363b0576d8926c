package dev

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	oldestPostgres = 15
	databaseUser   = "quern"
)

// Postgres is a cluster of our own.
type Postgres struct {
	*Process

	URL string
}

// cluster is a version of PostgreSQL, where its programs are, and its data.
type cluster struct {
	version int
	bin     string
	home    string              // of the data, the password file and the log
	user    *syscall.Credential // nil: as ourselves
}

func (c *cluster) data() string    { return filepath.Join(c.home, strconv.Itoa(c.version)) }
func (c *cluster) pidFile() string { return filepath.Join(c.data(), "postmaster.pid") }

// StartPostgres runs it on the folder's part for the database, on loopback and with a password.
func (f *Folder) StartPostgres(ctx context.Context) (*Postgres, error) {
	c := &cluster{home: f.File("postgres")}

	var err error
	if c.user, err = runAs(f.Path); err != nil {
		return nil, err
	}

	if err := c.choose(ctx); err != nil {
		return nil, err
	}

	if err := c.prepare(ctx, f.State.Password); err != nil {
		return nil, err
	}

	if err := c.endLeftover(); err != nil {
		return nil, err
	}

	// The children of a killed one take a while to notice, and keep a new one from starting until then.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		started, err := c.start(ctx, f)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) || !strings.Contains(err.Error(), "still in use") {
			return started, err
		}
	}
}

func (c *cluster) start(ctx context.Context, f *Folder) (*Postgres, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}

	process, err := program{
		name: "PostgreSQL", path: filepath.Join(c.bin, "postgres"), log: f.File("postgres.log"), user: c.user, polite: syscall.SIGINT, // fast, not smart
		// No unix socket: its path has a limit that a folder's path does not have.
		args: []string{
			"-D", c.data(), "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "max_connections=100", "-c", "shared_buffers=64MB",
		},
		env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"},
	}.start()
	if err != nil {
		return nil, err
	}

	if err := process.await(ctx, func() bool { return c.ready(process.command.Process.Pid) }); err != nil {
		process.Stop()

		return nil, err
	}

	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(databaseUser, f.State.Password), Host: Loopback(port), Path: "/postgres", RawQuery: "sslmode=disable",
	}

	return &Postgres{Process: process, URL: address.String()}, nil
}

// ready: PostgreSQL writes into the eighth line of its file how far it is.
func (c *cluster) ready(number int) bool {
	content, err := os.ReadFile(c.pidFile())
	lines := strings.Split(string(content), "\n")

	return err == nil && len(lines) >= 8 && lines[0] == strconv.Itoa(number) && strings.TrimSpace(lines[7]) == "ready"
}

// endLeftover also removes the file of one that is gone: if its number is now somebody else's, PostgreSQL would not start.
func (c *cluster) endLeftover() error {
	if err := endLeftover(c.pidFile(), c.data(), syscall.SIGINT); err != nil {
		return err
	}

	if err := os.Remove(c.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}

	return nil
}

// runAs: PostgreSQL refuses to run as root, so it runs as the user of its package, who must be able to enter the folder.
func runAs(folder string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // as ourselves
	}

	found, err := user.Lookup("postgres")
	if err != nil {
		return nil, errNoPostgres
	}

	for at := folder; at != "/"; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&1 == 0 {
			return nil, fmt.Errorf("PostgreSQL runs as the user postgres, who cannot enter %s: `chmod o+x %[1]s`, or use another folder with --dir", at)
		}
	}

	uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(found.Gid, 10, 32)

	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

var errNoPostgres = errors.New("PostgreSQL 15 or newer is not found: `apt-get install postgresql` installs it on Debian and Ubuntu; " +
	"or set QUERN_DATABASE_URL to a database that runs elsewhere")

// choose takes the version of the data that is there, or else the newest.
func (c *cluster) choose(ctx context.Context) error {
	installed := map[int]string{}

	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if path, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}

	newest := 0

	for _, folder := range folders {
		if version := postgresVersion(ctx, folder); version >= oldestPostgres {
			installed[version] = folder
			newest = max(newest, version)
		}
	}

	kept := 0

	entries, _ := os.ReadDir(c.home)
	for _, entry := range entries {
		version, _ := strconv.Atoi(entry.Name())
		kept = max(kept, version)
	}

	switch {
	case kept == 0 && newest == 0:
		return errNoPostgres
	case kept == 0:
		kept = newest
	case installed[kept] == "":
		return fmt.Errorf("the data in %s is of PostgreSQL %d, which is not installed: install it (postgresql-%[2]d), or begin anew in another folder with --dir", c.home, kept)
	}

	c.version, c.bin = kept, installed[kept]

	return nil
}

var versionPattern = regexp.MustCompile(`\d+`)

// postgresVersion is 0 where there is none that can make clusters.
func postgresVersion(ctx context.Context, folder string) int {
	said, err := exec.CommandContext(ctx, filepath.Join(folder, "initdb"), "--version").Output() //nolint:gosec // where PostgreSQL is looked for
	if err != nil {
		return 0
	}

	version, _ := strconv.Atoi(versionPattern.FindString(string(said)))

	return version
}

// prepare makes the cluster if it is not there, all of it or nothing.
func (c *cluster) prepare(ctx context.Context, password string) error {
	if _, err := os.Stat(c.data()); err == nil {
		return nil
	}

	unfinished := c.data() + ".new"
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(c.home, 0o700)); err != nil {
		return err
	}

	// Not in a folder of the other user's, who could let it lead elsewhere.
	passwordFile, err := os.CreateTemp(filepath.Dir(c.home), ".password-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(passwordFile.Name()) }()

	_, err = passwordFile.WriteString(password)
	if err = errors.Join(err, passwordFile.Close()); err != nil {
		return err
	}

	if c.user != nil {
		for _, path := range []string{c.home, passwordFile.Name()} {
			if err := os.Chown(path, int(c.user.Uid), int(c.user.Gid)); err != nil {
				return err
			}
		}
	}

	command := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "-D", unfinished, "-U", databaseUser, "-A", "scram-sha-256", //nolint:gosec // it was looked for
		"--pwfile="+passwordFile.Name(), "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions")
	command.Dir, command.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.user}

	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("PostgreSQL could not make its files in %s: %w\n%s", c.home, err, strings.TrimSpace(string(said)))
	}

	return os.Rename(unfinished, c.data())
}
