package dev

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/signin"
)

func TestFolder(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "dev")

	first, err := OpenFolder(path, 0, 0)
	require.NoError(t, err)
	require.Equal(t, defaultPort, first.State.Port)
	require.Equal(t, defaultIssuerPort, first.State.IssuerPort)

	info, err := os.Stat(first.File("state.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, err = OpenFolder(path, 0, 0)
	require.ErrorContains(t, err, "already runs")
	require.ErrorContains(t, err, "--dir")

	first.Close()

	second, err := OpenFolder(path, 9999, 0)
	require.NoError(t, err)

	defer second.Close()

	require.Equal(t, 9999, second.State.Port)
	second.State.Port = first.State.Port
	require.Equal(t, first.State, second.State, "secrets and keys stay")
}

func TestFolderFaults(t *testing.T) {
	t.Parallel()

	path := t.TempDir()

	made, err := OpenFolder(path, 0, 7001)
	require.NoError(t, err)
	made.Close()

	_, err = OpenFolder(path, 0, 7002)
	require.ErrorContains(t, err, "port 7001")

	require.NoError(t, os.WriteFile(made.File("state.json"), []byte("{"), 0o600))

	_, err = OpenFolder(path, 0, 0)
	require.ErrorContains(t, err, "start again")
}

// TestStorePort checks that the store keeps its port from start to start, unless another process has taken it.
func TestStorePort(t *testing.T) {
	t.Parallel()

	f, err := OpenFolder(filepath.Join(t.TempDir(), "dev"), 0, 0)
	require.NoError(t, err)

	first, err := f.storePort(t.Context())
	require.NoError(t, err)
	f.Close()

	f, err = OpenFolder(f.Path, 0, 0)
	require.NoError(t, err)

	defer f.Close()

	again, err := f.storePort(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)

	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", Loopback(first))
	require.NoError(t, err)

	defer func() { _ = taken.Close() }()

	other, err := f.storePort(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first, other)
}

func TestCheckPort(t *testing.T) {
	t.Parallel()

	issuer := newIssuer(t, newKey(t))

	free, err := freePort(t.Context())
	require.NoError(t, err)
	require.NoError(t, CheckPort(t.Context(), free, "--port"))

	var taken int

	require.NoError(t, json.Unmarshal([]byte(issuer.URL[len("http://127.0.0.1:"):]), &taken))
	require.ErrorContains(t, CheckPort(t.Context(), taken, "--port"), "choose another port with --port")
}

// TestSignIn checks that entries of other servers are not changed, and that no user who signed in is replaced.
func TestSignIn(t *testing.T) {
	t.Parallel()

	const (
		server = "http://127.0.0.1:8080"
		other  = "https://quern.example.org"
	)

	read := func(home string) (file struct {
		Current string
		Servers map[string]map[string]any
		Kept    string
	},
	) {
		content, err := os.ReadFile(filepath.Join(home, "credentials.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(content, &file))

		return file
	}

	issuer, home := newIssuer(t, newKey(t)), filepath.Join(t.TempDir(), "home")

	told, err := issuer.SignIn(home, server, "ada")
	require.NoError(t, err)
	require.Equal(t, SignedIn{File: filepath.Join(home, "credentials.json"), Username: "ada", Current: true}, told)
	require.Equal(t, server, read(home).Current)

	info, err := os.Stat(told.File)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// A user who is already signed in is not replaced.
	entry := raw(signin.Entry{Issuer: issuer.URL, Refresh: issuer.Grant("bob", client).Refresh})
	require.NoError(t, os.WriteFile(told.File, []byte(`{"kept": "yes", "current": "`+other+`", "servers": {"`+other+`": {"accessToken": "theirs"}, "`+server+`": `+string(entry)+`}}`), 0o600))

	told, err = issuer.SignIn(home, server, "ada")
	require.NoError(t, err)
	require.Equal(t, "bob", told.Username)
	require.False(t, told.Current)

	// A sign-in from an earlier folder is replaced; the other entries and the default stay.
	stranger := newIssuer(t, newKey(t))
	stranger.URL = issuer.URL

	told, err = stranger.SignIn(home, server, "ada")
	require.NoError(t, err)
	require.Equal(t, "ada", told.Username)
	require.False(t, told.Current)

	after := read(home)
	require.Equal(t, other, after.Current)
	require.Equal(t, map[string]any{"accessToken": "theirs"}, after.Servers[other])
	require.Equal(t, "yes", after.Kept)

	// A sign-in of another issuer at the same address is not changed.
	foreign := newIssuer(t, newKey(t))

	before := read(home)
	told, err = foreign.SignIn(home, server, "ada")
	require.NoError(t, err)
	require.Empty(t, told.Username)
	require.Contains(t, told.Problem, "another issuer")
	require.Equal(t, before, read(home))

	require.NoError(t, os.WriteFile(told.File, []byte("not JSON"), 0o600))

	told, err = foreign.SignIn(home, server, "ada")
	require.NoError(t, err)
	require.Contains(t, told.Problem, "cannot be read")
}
