package e2e

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// common is what all tests of a run share. The first test that needs a part creates it. The runner names the folder, because it starts
// a process for each test, and removes the parts at the end. Without the runner, TestMain does both.
//
//nolint:gochecknoglobals // made once for all tests
var common = sharedParts{folder: os.Getenv("QUERN_TEST_SHARED")}

type sharedParts struct {
	folder string
	roles  sharedRoles
}

// Files of the folder.
const realmFile, templateFile, tokensFile = "realm.json", "template", "tokens-"

// foreverShared is the age limit of parts that do not expire during a run.
const foreverShared = 24 * time.Hour

// once returns the content of a file of the folder. If the file is missing or too old, it calls create, while other tests that need the
// file wait.
func (c *sharedParts) once(name string, maxAge time.Duration, create func() ([]byte, error)) ([]byte, error) {
	path := filepath.Join(c.folder, name)

	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // ends the lock too

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}

	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) < maxAge {
		return os.ReadFile(path)
	}

	content, err := create()
	if err != nil {
		return nil, err
	}

	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return nil, err
	}

	return content, os.Rename(path+".new", path)
}

// program returns the path of a program in the folder and builds it first if it is missing.
func (c *sharedParts) program(name string, env []string, arguments ...string) (string, error) {
	path := filepath.Join(c.folder, name)

	_, err := c.once(name+".built", foreverShared, func() ([]byte, error) {
		build := exec.Command("go", append([]string{"build", "-o", path}, arguments...)...)
		build.Env = append(os.Environ(), env...)

		output, err := build.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, output)
		}

		return nil, nil
	})

	return path, err
}

// storedRealm is the shared realm as it is in the folder. Every test may sign tokens with its key.
type storedRealm struct {
	Name, KeyID string
	Key         []byte
}

// realm returns the shared realm for one test. It is for tests that do not change it.
func (c *sharedParts) realm(t *testing.T) *realm {
	t.Helper()

	base := stack.Env(t, "QUERN_TEST_KEYCLOAK_URL")

	content, err := c.once(realmFile, foreverShared, func() ([]byte, error) {
		name, err := createRealm(context.WithoutCancel(t.Context()))
		require.NoError(t, err, "is the stack running? make stack")

		imported := (&realm{t: t, base: base, name: name}).importKey(t)

		return json.Marshal(storedRealm{Name: name, KeyID: imported.keyID, Key: x509.MarshalPKCS1PrivateKey(imported.key)})
	})
	require.NoError(t, err)

	var stored storedRealm
	require.NoError(t, json.Unmarshal(content, &stored))
	key, err := x509.ParsePKCS1PrivateKey(stored.Key)
	require.NoError(t, err)

	return &realm{t: t, base: base, name: stored.Name, shared: &sharedKey{id: stored.KeyID, key: key}}
}

// sharedKey is the key of the shared realm.
type sharedKey struct {
	id  string
	key *rsa.PrivateKey
}

// tokens returns the tokens of a user of the shared realm. They are kept because Keycloak hashes a password at each sign-in.
func (c *sharedParts) tokens(t *testing.T, user string, signIn func() tokens) (kept tokens) {
	t.Helper()

	content, err := c.once(tokensFile+user, tokenLifespan/2, func() ([]byte, error) { return json.Marshal(signIn()) })
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &kept))

	return kept
}

// template returns the migrated database that the tests copy, so that `quernd migrate` runs once for all of them.
func (c *sharedParts) template(t *testing.T) string {
	t.Helper()

	name, err := c.once(templateFile, foreverShared, func() ([]byte, error) {
		name := "e2e_template_" + uuid.NewString()
		c.roles.make(t)
		require.NoError(t, onServer("CREATE DATABASE %s OWNER %s", name, ownerRole), "is the stack running? make stack")
		migrate(t, databaseAddress(t, name))

		return []byte(name), nil
	})
	require.NoError(t, err)

	return string(name)
}

// remove deletes the realm and the database that tests created.
func (c *sharedParts) remove() error {
	var failures []error

	if content, err := os.ReadFile(filepath.Join(c.folder, realmFile)); err == nil {
		var stored storedRealm

		failures = append(failures, json.Unmarshal(content, &stored), deleteRealm(stored.Name))
	}

	if name, err := os.ReadFile(filepath.Join(c.folder, templateFile)); err == nil {
		failures = append(failures, onServer("DROP DATABASE %s WITH (FORCE)", string(name)))
	}

	return errors.Join(failures...)
}
