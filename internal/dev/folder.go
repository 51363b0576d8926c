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

// Folder keeps everything of one `quernd dev`, and belongs to one process at a time.
type Folder struct {
	Path  string
	State State
	lock  *os.File
}

// State is what must stay the same from start to start. It holds secrets: its file is for its owner alone.
type State struct {
	Port       int    `json:"port"`
	IssuerPort int    `json:"issuerPort"` // accounts are known by the issuer's address
	IssuerKey  []byte `json:"issuerKey"`  // the seed
	Secret     string `json:"secret"`
	Password   string `json:"databasePassword"`
	AccessKey  string `json:"storeAccessKey"`
	SecretKey  string `json:"storeSecretKey"`
	Sampled    bool   `json:"sampled"` // so that a sample which was deleted stays so
}

// The ports of a first start.
const (
	defaultPort       = 8080
	defaultIssuerPort = 8081
)

// DefaultFolder is where things are kept unless somebody says otherwise. PostgreSQL does not run as root, and its own user cannot
// enter root's home.
func DefaultFolder(getenv func(string) string) (string, error) {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "quern", "dev"), nil
	}

	if os.Geteuid() == 0 {
		return "/var/lib/quern/dev", nil
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home folder to keep things in: say another one with --dir")
	}

	return filepath.Join(home, ".local", "state", "quern", "dev"), nil
}

// OpenFolder makes the folder if it is not there, and keeps other processes away from it until Close. Ports that are 0 are those of the last start.
func OpenFolder(path string, port, issuerPort int) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(path, folderMode()); err != nil {
		return nil, fmt.Errorf("the folder for data: %w; say another one with --dir", err)
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

// folderMode: the user postgres must be able to pass through a folder of root's to its own.
func folderMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}

	return 0o700
}

// Close lets the next process have it.
func (f *Folder) Close() { _ = f.lock.Close() }

// File is a path in the folder.
func (f *Folder) File(parts ...string) string {
	return filepath.Join(append([]string{f.Path}, parts...)...)
}

// claim takes the lock, which the kernel gives back however this process ends.
func (f *Folder) claim() error {
	lock, err := os.OpenFile(f.File("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(lock.Name())
		_ = lock.Close()

		return fmt.Errorf("`quernd dev` runs already on %s (process %s): end it with Ctrl-C there or with `kill %[2]s`, or use another folder with --dir, --port and --issuer-port",
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
			return fmt.Errorf("%s cannot be read: it was changed or is from another version. Remove the folder to begin anew, or use another with --dir", f.File("state.json"))
		}
	}

	if issuerPort != 0 && issuerPort != f.State.IssuerPort {
		return fmt.Errorf("the users of %s are known by their issuer at port %d: leave --issuer-port out, or use another folder with --dir", f.Path, f.State.IssuerPort)
	}

	if port != 0 {
		f.State.Port = port
	}

	return f.Keep()
}

// Keep writes the state.
func (f *Folder) Keep() error { return signin.Write(f.File("state.json"), f.State) }

// Key signs the issuer's tokens.
func (f *Folder) Key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(f.State.IssuerKey) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails

	return b
}

// CheckPort tells whether a port of loopback is free, and what to do if it is not.
func CheckPort(ctx context.Context, number int, flag string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Loopback(number))
	if err != nil {
		return fmt.Errorf("port %d is taken: `ss -ltnp sport = :%[1]d` shows by whom. End that, or choose another with %s", number, flag)
	}

	return listener.Close()
}

// Loopback is the address of a port there.
func Loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// freePort is one that nobody has at the moment.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Loopback(0))
	if err != nil {
		return 0, err
	}

	address, _ := listener.Addr().(*net.TCPAddr)

	return address.Port, listener.Close()
}
