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

// Postgres is a running cluster of `quernd dev`.
type Postgres struct {
	*Process

	URL string
}

// cluster is a version of PostgreSQL with the folders of its programs and its data.
type cluster struct {
	version int
	bin     string
	home    string              // contains one data folder for each version
	user    *syscall.Credential // nil means the current user
}

func (c *cluster) data() string    { return filepath.Join(c.home, strconv.Itoa(c.version)) }
func (c *cluster) pidFile() string { return filepath.Join(c.data(), "postmaster.pid") }

// StartPostgres runs PostgreSQL on the database folder, on loopback and with a password.
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

	// The children of a killed server take a while to notice, and prevent the start of a new one until then.
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
		name: "PostgreSQL", path: filepath.Join(c.bin, "postgres"), log: f.File("postgres.log"), user: c.user, polite: syscall.SIGINT, // a fast shutdown, which does not wait for clients
		// No Unix socket: the length of its path is limited, and the path of the folder may be longer.
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

// ready reports whether PostgreSQL accepts connections, according to the eighth line of its PID file.
func (c *cluster) ready(number int) bool {
	content, err := os.ReadFile(c.pidFile())
	lines := strings.Split(string(content), "\n")

	return err == nil && len(lines) >= 8 && lines[0] == strconv.Itoa(number) && strings.TrimSpace(lines[7]) == "ready"
}

// endLeftover ends a server that an earlier process left running. It also removes the PID file of a server that no
// longer runs: if another process now has its PID, PostgreSQL would not start.
func (c *cluster) endLeftover() error {
	if err := endLeftover(c.pidFile(), c.data(), syscall.SIGINT); err != nil {
		return err
	}

	if err := os.Remove(c.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}

	return nil
}

// runAs returns the user that PostgreSQL runs as. PostgreSQL refuses to run as root, so root runs it as the user of its
// package, who must be able to enter the folder.
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
			return nil, fmt.Errorf("PostgreSQL runs as the user postgres, who cannot access %s: run `chmod o+x %[1]s`, or choose another folder with --dir", at)
		}
	}

	uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(found.Gid, 10, 32)

	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

var errNoPostgres = errors.New("PostgreSQL 15 or newer was not found: install it, on Debian and Ubuntu with `apt-get install postgresql`, " +
	"or set QUERN_DATABASE_URL to an existing database")

// choose selects the version of the existing data, or else the newest installed version.
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
		return fmt.Errorf("the data in %s is from PostgreSQL %d, which is not installed: install it (postgresql-%[2]d), or choose another folder with --dir", c.home, kept)
	}

	c.version, c.bin = kept, installed[kept]

	return nil
}

var versionPattern = regexp.MustCompile(`\d+`)

// postgresVersion returns 0 if the folder contains no PostgreSQL that can create clusters.
func postgresVersion(ctx context.Context, folder string) int {
	said, err := exec.CommandContext(ctx, filepath.Join(folder, "initdb"), "--version").Output() //nolint:gosec // where PostgreSQL is looked for
	if err != nil {
		return 0
	}

	version, _ := strconv.Atoi(versionPattern.FindString(string(said)))

	return version
}

// prepare creates the cluster if it does not exist, completely or not at all.
func (c *cluster) prepare(ctx context.Context, password string) error {
	if _, err := os.Stat(c.data()); err == nil {
		return nil
	}

	unfinished := c.data() + ".new"
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(c.home, 0o700)); err != nil {
		return err
	}

	// Not in a folder of the other user, who could replace the path by a symbolic link.
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
		return fmt.Errorf("PostgreSQL could not create its files in %s: %w\n%s", c.home, err, strings.TrimSpace(string(said)))
	}

	return os.Rename(unfinished, c.data())
}
