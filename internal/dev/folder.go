package dev

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"quern.dev/quern/internal/signin"
)

// Folder contains everything of one `quernd dev`, and only one process at a time may use it.
type Folder struct {
	Path  string
	State State
	lock  *os.File
}

// State is what must stay the same from start to start. It contains secrets, so only the owner may read its file.
type State struct {
	Port       int    `json:"port"`
	IssuerPort int    `json:"issuerPort"` // accounts are identified by the issuer's address
	IssuerKey  []byte `json:"issuerKey"`  // seed of the key
	Secret     string `json:"secret"`
	Password   string `json:"databasePassword"`
	AccessKey  string `json:"storeAccessKey"`
	SecretKey  string `json:"storeSecretKey"`
	SourceKey  string `json:"sourceKey"` // encrypts the secrets of connections
	StorePort  int    `json:"storePort"` // 0 before the first start
	Sampled    bool   `json:"sampled"`   // the sample was loaded; do not load it again if it was deleted
}

// The ports of the first start.
const (
	defaultPort       = 8080
	defaultIssuerPort = 8081
)

// DefaultFolder returns the folder that is used without --dir. It is not in the home of root, because PostgreSQL does
// not run as root and its own user cannot enter that home.
func DefaultFolder(getenv func(string) string) (string, error) {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "quern", "dev"), nil
	}

	if os.Geteuid() == 0 {
		return "/var/lib/quern/dev", nil
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home folder was found: choose a folder with --dir")
	}

	return filepath.Join(home, ".local", "state", "quern", "dev"), nil
}

// OpenFolder creates the folder if it does not exist, and locks it until Close. A port of 0 means the port of the last
// start.
func OpenFolder(path string, port, issuerPort int) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(path, folderMode()); err != nil {
		return nil, fmt.Errorf("the data folder: %w; choose another one with --dir", err)
	}

	f := &Folder{Path: path}
	if err := f.claim(); err != nil {
		return nil, err
	}

	if err := f.read(port, issuerPort); err != nil {
		f.Close()

		return nil, err
	}

	return f, nil
}

// folderMode returns the mode of the folder. The user postgres must be able to traverse a folder of root to reach its
// own folder.
func folderMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}

	return 0o700
}

// Close releases the lock.
func (f *Folder) Close() { _ = f.lock.Close() }

// File returns a path in the folder.
func (f *Folder) File(parts ...string) string {
	return filepath.Join(append([]string{f.Path}, parts...)...)
}

// claim takes the lock, which the kernel releases however this process ends.
func (f *Folder) claim() error {
	lock, err := os.OpenFile(f.File("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(lock.Name())
		_ = lock.Close()

		return fmt.Errorf("`quernd dev` already runs on %s (process %s): stop it with Ctrl-C there or with `kill %[2]s`, or choose another folder and ports with --dir, --port and --issuer-port",
			f.Path, strings.TrimSpace(string(holder)))
	}

	f.lock = lock

	return errors.Join(lock.Truncate(0), writeAll(lock, fmt.Appendf(nil, "%d\n", os.Getpid())))
}

func writeAll(file *os.File, content []byte) error {
	_, err := file.WriteAt(content, 0)

	return err
}

func (f *Folder) read(port, issuerPort int) error {
	content, err := os.ReadFile(f.File("state.json"))

	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.State = State{
			Port: defaultPort, IssuerPort: defaultIssuerPort, IssuerKey: randomBytes(ed25519.SeedSize),
			Secret: rand.Text() + rand.Text(), Password: rand.Text(), AccessKey: rand.Text()[:20], SecretKey: rand.Text() + rand.Text(),
		}

		if issuerPort != 0 {
			f.State.IssuerPort = issuerPort
		}
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(content, &f.State); err != nil || len(f.State.IssuerKey) != ed25519.SeedSize {
			return fmt.Errorf("%s cannot be read: it was changed, or another version wrote it. Remove the folder to start again, or choose another one with --dir", f.File("state.json"))
		}
	}

	if issuerPort != 0 && issuerPort != f.State.IssuerPort {
		return fmt.Errorf("the users of %s belong to the issuer at port %d: omit --issuer-port, or choose another folder with --dir", f.Path, f.State.IssuerPort)
	}

	if port != 0 {
		f.State.Port = port
	}

	if f.State.SourceKey == "" { // also of a folder of an earlier version
		f.State.SourceKey = rand.Text() + rand.Text()
	}

	return f.Keep()
}

// Keep writes the state to its file.
func (f *Folder) Keep() error { return signin.Write(f.File("state.json"), f.State) }

// Key returns the key that signs the tokens of the issuer.
func (f *Folder) Key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(f.State.IssuerKey) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails

	return b
}

// CheckPort returns nil if a port of loopback is free, and otherwise an error that says what to do.
func CheckPort(ctx context.Context, number int, flag string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Loopback(number))
	if err != nil {
		return fmt.Errorf("port %d cannot be used, probably because another process uses it: `ss -ltnp sport = :%[1]d` shows the process. Stop it, or choose another port with %s", number, flag)
	}

	return listener.Close()
}

// Loopback returns the address of a port on loopback.
func Loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// freePort returns a port that is free at the moment.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Loopback(0))
	if err != nil {
		return 0, err
	}

	address, _ := listener.Addr().(*net.TCPAddr)

	return address.Port, listener.Close()
}
